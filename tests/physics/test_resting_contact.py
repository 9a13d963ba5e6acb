"""Sliding, rolling and stacking against the laws of friction and weight."""

import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import box_stack, rolling_ball, sliding_block

GRAVITY = 9.81


@pytest.fixture
def precision(x64):
    return "float64"


@functools.cache
def compiled(make, steps, wide):
    """Return the simulation and its compiled run, in double precision or not."""
    simulation = make()
    return simulation, jax.jit(trajectory(simulation, steps, steps))


def ends(make, steps, **params):
    """Return the diagnostics at the end of a run."""
    simulation, run = compiled(make, steps, jax.config.jax_enable_x64)
    _, _, diagnosed = run(simulation.with_params(**params).params, jax.random.key(0))
    return {name: float(values[-1]) for name, values in diagnosed.items()}


def sliding_distance(speed, friction, slope=0.0):
    angle = np.deg2rad(slope)
    return speed**2 / (2 * GRAVITY * (friction * np.cos(angle) - np.sin(angle)))


# The last, partial step of sliding is what the leapfrog gets wrong: (mu g dt)^2 / (8 mu g) = 5e-6 m at 3 ms. In
# float32, 300 steps round positions of 0.5 m to 6e-8 each.
@pytest.mark.parametrize("time_step", [1e-3, 3e-3])
@pytest.mark.parametrize("slope, friction", [(0.0, 0.5), (15.0, 0.6), (-10.0, 0.3)])
def test_block_comes_to_rest_after_the_distance_of_coulomb_friction(precision, time_step, slope, friction):
    end = ends(sliding_block, round(0.9 / time_step), slope=slope, friction=friction, time_step=time_step)
    atol = 6e-6 if precision == "float64" else 6e-6 + 900 * 6e-8
    assert end["distance"] == pytest.approx(sliding_distance(2.0, friction, slope), abs=atol)
    assert end["penetration"] < 1e-5


def test_block_sticks_below_the_angle_of_friction_and_slides_above_it(precision):
    angle, time = np.deg2rad(30), 0.8
    stuck = ends(sliding_block, 400, slope=30.0, speed=0.0, friction=0.6, time_step=2e-3)
    # tan 30 = 0.577.
    assert abs(stuck["distance"]) < (1e-6 if precision == "float64" else 1e-5)
    slides = ends(sliding_block, 400, slope=30.0, speed=0.0, friction=0.3, time_step=2e-3)
    acceleration = GRAVITY * (np.sin(angle) - 0.3 * np.cos(angle))
    # The parabola is exact; 400 roundings.
    rtol = 1e-12 if precision == "float64" else 400 * 1.2e-7
    assert slides["distance"] == pytest.approx(acceleration * time**2 / 2, rel=rtol)
    assert slides["speed"] == pytest.approx(acceleration * time, rel=rtol)


@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_ball_that_slides_ends_rolling_at_five_sevenths_of_its_speed(precision, friction):
    end = ends(rolling_ball, 400, back_spin=0.0, friction=friction)
    # Friction acts where it should to the last bit, whatever its size; 400 roundings.
    rtol = 1e-12 if precision == "float64" else 400 * 1.2e-7
    assert end["speed"] == pytest.approx(3.5 * 5 / 7, rel=rtol)
    assert abs(end["slip"]) < 3.5 * rtol


def test_stack_of_four_boxes_stays_at_rest(precision):
    simulation = box_stack()
    step = jax.jit(trajectory(simulation, 500, 100))
    _, observed, diagnosed = step(simulation.params, jax.random.key(0))
    position, velocity = np.asarray(observed["position"]), np.asarray(observed["velocity"])
    built = [[0, 0, 0.1], [0.02, 0, 0.3], [0, 0, 0.5], [0.02, 0, 0.7]]
    # 1 mm is asked for; what the stack sinks in the first steps, and is left as it is, is 2 g dt^2 = 0.3 mm at most.
    np.testing.assert_allclose(position[-1], built, rtol=0, atol=4e-4)
    # No drift: over the last second nothing moves but by rounding and the tail of the sweeps' convergence.
    np.testing.assert_allclose(position[-1], position[-3], rtol=0, atol=1e-6)
    assert np.abs(velocity[-1]).max() < 1e-5
    assert diagnosed["penetration"].max() < 4e-4
