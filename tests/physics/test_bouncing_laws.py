"""Laws of a thrown ball: free fall, restitution, rest, rolling, energy."""

import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import bouncing_ball

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key_data(jax.random.key(0))
GRAVITY = 9.81


@functools.cache
def compiled(steps):
    return jax.jit(trajectory(bouncing_ball(), steps, 1))


def history(steps, **params):
    simulation = bouncing_ball().with_params(**params)
    _, frames, diagnostics = compiled(steps)(simulation.params, KEY)
    return jax.tree.map(np.asarray, {**frames, **diagnostics})


def turned(orientation):
    """Angle about y, with whole turns, of orientations (frames, 1, 4) that differ by less than half a turn."""
    w, x, y, z = np.moveaxis(orientation[:, 0], -1, 0)
    np.testing.assert_array_equal([x, z], 0)
    return np.unwrap(2 * np.arctan2(y, w), period=2 * np.pi)


@pytest.mark.parametrize("time_step", [1e-3, 0.1, 1.0])
def test_free_flight_is_the_exact_parabola_at_any_time_step(time_step):
    seen = history(round(1 / time_step), launch_speed=7.0, launch_angle=30.0, launch_height=5.0, time_step=time_step)
    t, v = seen["time"], np.array([7.0 * np.cos(np.pi / 6), 7.0 * np.sin(np.pi / 6)])
    # 1000 additions of numbers below 10 err by less than 1000 rounding units of 1e-15.
    np.testing.assert_allclose(seen["position_x"], v[0] * t, atol=1e-10)
    np.testing.assert_allclose(seen["height"], 5.0 + v[1] * t - GRAVITY * t**2 / 2, atol=1e-10)


@pytest.mark.parametrize("time_step", [1e-3, 4e-3, 1e-2])
def test_apexes_fall_by_the_square_of_the_restitution(time_step):
    # Dropped from 1 m with e = 0.8, the ball is in flight n at (1 + 2 (e + ... + e^(n-1)) + e^n) times 0.4515 s.
    seen = history(round(3.2 / time_step), launch_speed=0.0, restitution=0.8, gravity=GRAVITY, time_step=time_step)
    for bounces, ratio in ((1, 0.64), (2, 0.4096), (3, 0.262144), (4, 0.16777216)):
        during = seen["apex_ratio"][seen["bounces"] == bounces]
        assert len(during) > 10
        # Rounding of thousands of steps of 1e-16 each, relative to a sixth; 1e-6 would do.
        np.testing.assert_allclose(during, ratio, rtol=1e-11)


def test_an_elastic_ball_on_a_smooth_floor_conserves_its_energy_over_a_hundred_bounces():
    seen = history(2100, launch_speed=0.0, launch_height=0.05, restitution=1.0, friction=0.0, spin=0.0, time_step=0.01)
    assert seen["bounces"][-1] > 100
    np.testing.assert_allclose(seen["energy"], seen["energy"][0], rtol=1e-9)


@pytest.mark.parametrize("friction", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9, 1.0])
def test_energy_never_increases_and_the_ball_never_sinks(restitution, friction):
    seen = history(600, launch_speed=6.0, restitution=restitution, friction=friction, spin=-40.0)
    # Ten or so roundings per step of 1.1e-16 of the energy, and of heights of a few meters.
    assert np.diff(seen["energy"]).max() < 20 * 1.1e-16 * seen["energy"][0]
    assert seen["penetration"].max() < 1e-14


def test_two_impacts_in_one_step_are_both_applied():
    # From 1 m with e = 0.5: impacts at 0.4515 and 0.9030 s, then the apex 1/16 m at 1.0159 s.
    fall = np.sqrt(2 / GRAVITY)
    seen = history(1, launch_speed=0.0, restitution=0.5, spin=0.0, time_step=2.25 * fall)
    assert seen["bounces"][-1] == 2
    # A handful of roundings of numbers of order 1.
    np.testing.assert_allclose([seen["height"][-1], seen["apex_ratio"][-1]], 1 / 16, rtol=1e-13)


def test_a_ball_comes_to_rest_after_infinitely_many_bounces_and_stays():
    seen = history(400, launch_speed=0.0, restitution=0.5, spin=0.0)
    # Zeno's time, (1 + e) / (1 - e) times the fall of 0.4515 s, is 1.3546 s.
    resting = seen["time"] > 3 * np.sqrt(2 / GRAVITY) + 0.01
    assert (seen["speed"][~resting][5:-2] > 0).all()
    for name in ("height", "speed", "position_x", "energy", "apex_ratio", "penetration"):
        np.testing.assert_array_equal(seen[name][resting], 0)


def test_a_sliding_sphere_ends_rolling_at_five_sevenths_of_its_speed():
    speed, friction = 2.0, 0.3
    seen = history(
        100, launch_height=0.0, launch_angle=0.0, launch_speed=speed, spin=0.0, friction=friction, gravity=GRAVITY
    )
    t, deceleration = seen["time"], friction * GRAVITY
    slipping_ends = 2 * speed / (7 * deceleration)  # 0.194 s
    way = np.where(
        t < slipping_ends, speed * t - deceleration * t**2 / 2, 5 / 7 * speed * t + deceleration * slipping_ends**2 / 2
    )
    # 100 roundings of numbers of order 1.
    np.testing.assert_allclose(seen["position_x"], way, atol=1e-13)
    np.testing.assert_allclose(seen["speed"][t > slipping_ends], 5 / 7 * speed, rtol=1e-13)
    np.testing.assert_array_equal(seen["height"], 0)
    np.testing.assert_array_equal(seen["bounces"], 0)
    # The spin gains 5/2 of what the velocity loses, over the radius of 0.1 m, and so does the angle.
    angle = 2.5 * (speed * t - way) / 0.1
    np.testing.assert_allclose(turned(seen["orientation"]), angle, atol=1e-12)


def test_bouncing_to_rest_gives_the_same_final_roll_as_sliding():
    # Friction at the floor keeps the angular momentum about it, v + 2/5 r omega per mass, and ends in v = r omega.
    speed, spin, radius = 3.0, -50.0, 0.1
    seen = history(
        400, launch_speed=speed, launch_angle=0.0, launch_height=0.3, spin=spin, restitution=0.6, radius=radius
    )
    expected = (5 * speed + 2 * radius * spin) / 7
    np.testing.assert_allclose(seen["velocity"][-1, 0, 0], expected, rtol=1e-13)  # 400 roundings, mostly of sums


def test_the_ball_turns_as_it_rolls():
    speed, radius = 1.5, 0.1
    seen = history(
        100, launch_height=0.0, launch_angle=0.0, launch_speed=speed, spin=speed / radius, radius=radius, time_step=0.01
    )
    # 100 roundings of quaternion components, doubled by the half angle.
    np.testing.assert_allclose(turned(seen["orientation"]), speed / radius * seen["time"], atol=1e-13)
