"""Contact: the law of a compliant contact, rest and sliding, derivatives through events."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from simkit import build
from simkit.core.rollout import trajectory
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.rigid.contact.two_balls import DEFAULTS as EVENT_DEFAULTS
from tests.rigid.contact.two_balls import central_differences, derivatives, end

KEY = jax.random.key(0)
DEFAULTS = {
    "speed": 2.0,
    "mass": 0.7,
    "stiffness": 1e5,
    "dissipation": 0.15,
    "friction": 0.0,
    "gravity": 0.0,
    "time_step": 1e-3,
}


def params_of(dtype=float, **changed):
    return {name: jnp.asarray(value, dtype=dtype) for name, value in (DEFAULTS | changed).items()}


@functools.cache
def impact(substeps=4):
    """Return a ball that hits the floor at a given speed, between two steps."""
    return simulate(
        Scene(
            params=params_of(),
            bodies=lambda p: repeat(sphere(p["mass"], 0.1, p["friction"]), 1),
            start=lambda p, bodies, key: motion_of(
                bodies, Vector(jnp.zeros(1), jnp.zeros(1), 0.1013 * jnp.ones(1)), velocity=Vector(0.0, 0.0, -p["speed"])
            ),
            dynamics=Compliant(substeps=substeps),
            planes=lambda p: floor(),
            loads=(gravity(),),
        )
    )


@functools.cache
def outgoing(substeps=4, steps=40):
    """Return ``params -> speed after the impact``, compiled, and its derivatives."""
    run = trajectory(impact(substeps), steps, steps)

    def speed(params):
        return run(params, KEY)[0].motion.velocity.z[0]

    return jax.jit(jax.value_and_grad(speed))


def exact_restitution(x):
    """Solve (1 + e) x = ln((1 + x) / (1 - e x)) for e."""
    return brentq(lambda e: (1 + e) * x - np.log((1 + x) / (1 - e * x)), 1e-9, min(1, 1 / x) * (1 - 1e-12))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
def test_restitution_decreases_with_speed_as_in_the_integrated_law(speed):
    # A substep of 1 ms / 4 is 1/100 of the contact; the error of second order is then some 1e-4.
    value, _ = outgoing()(params_of(speed=speed))
    assert float(value) == pytest.approx(speed * exact_restitution(1.5 * 0.15 * speed), rel=5e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["speed", "stiffness", "dissipation", "mass"])
def test_derivatives_equal_central_differences(name):
    params = params_of()
    value, slope = outgoing()(params)
    step = 1e-5 * float(params[name])
    ends = [float(outgoing()({**params, name: params[name] + sign * step})[0]) for sign in (1, -1)]
    # Rounding of the value over twice the step, and the third derivative through steps that touch.
    assert float(slope[name]) == pytest.approx(
        (ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-9 * float(value) / step
    )


@pytest.mark.usefixtures("x64")
def test_an_elastic_contact_lasts_as_long_as_that_of_hertz():
    """A mass m on k d^(3/2) dents it by (5 m v^2 / 4 k)^(2/5), in 2.9432751 times that over v in all."""
    params = params_of(dissipation=0.0)
    state, _, _ = jax.jit(trajectory(impact(), 40, 40))(params, KEY)
    depth = (5 * 0.7 * 2.0**2 / (4 * 1e5)) ** 0.4
    # Counted in whole substeps, of which the first and the last are cut short.
    assert int(state.memory.shortest) * 1e-3 / 4 == pytest.approx(2.9432751 * depth / 2.0, abs=2e-3 / 4)
    assert float(state.motion.velocity.z[0]) == pytest.approx(2.0, rel=1e-4)


GRAVITY = 9.81


@functools.cache
def compiled(name, steps):
    """Return the simulation of a scenario and its compiled run."""
    simulation = build(name)
    return simulation, jax.jit(trajectory(simulation, steps, steps))


def ends(name, steps, **params):
    """Return the diagnostics at the end of a run."""
    simulation, run = compiled(name, steps)
    _, _, diagnosed = run(simulation.with_params(**params).params, jax.random.key(0))
    return {name: float(values[-1]) for name, values in diagnosed.items()}


def sliding_distance(speed, friction, slope=0.0):
    angle = np.deg2rad(slope)
    return speed**2 / (2 * GRAVITY * (friction * np.cos(angle) - np.sin(angle)))


# The last, partial step of sliding is what the leapfrog gets wrong: (mu g dt)^2 / (8 mu g) = 5e-6 m at 3 ms.
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("time_step", [1e-3, 3e-3])
@pytest.mark.parametrize("slope, friction", [(0.0, 0.5), (15.0, 0.6), (-10.0, 0.3)])
def test_block_comes_to_rest_after_the_distance_of_coulomb_friction(time_step, slope, friction):
    end = ends("sliding_block", round(0.9 / time_step), slope=slope, friction=friction, time_step=time_step)
    assert end["distance"] == pytest.approx(sliding_distance(2.0, friction, slope), abs=6e-6)
    assert end["penetration"] < 1e-5


@pytest.mark.usefixtures("x64")
def test_block_sticks_below_the_angle_of_friction_and_slides_above_it():
    angle, time = np.deg2rad(30), 0.8
    stuck = ends("sliding_block", 400, slope=30.0, speed=0.0, friction=0.6, time_step=2e-3)
    # tan 30 = 0.577.
    assert abs(stuck["distance"]) < 1e-6
    slides = ends("sliding_block", 400, slope=30.0, speed=0.0, friction=0.3, time_step=2e-3)
    acceleration = GRAVITY * (np.sin(angle) - 0.3 * np.cos(angle))
    # The parabola is exact; 400 roundings.
    assert slides["distance"] == pytest.approx(acceleration * time**2 / 2, rel=1e-12)
    assert slides["speed"] == pytest.approx(acceleration * time, rel=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_ball_that_slides_ends_rolling_at_five_sevenths_of_its_speed(friction):
    end = ends("rolling_ball", 400, back_spin=0.0, friction=friction)
    # Friction acts where it should to the last bit, whatever its size; 400 roundings.
    assert end["speed"] == pytest.approx(3.5 * 5 / 7, rel=1e-12)
    assert abs(end["slip"]) < 3.5e-12


@pytest.mark.usefixtures("x64")
def test_stack_of_four_boxes_stays_at_rest():
    simulation = build("box_stack")
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


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [80, 200, 800])
def test_the_derivative_of_the_height_through_one_bounce_is_the_analytic_one(steps):
    z0, e, time = 1.0, 0.8, 0.8
    t1 = np.sqrt(2 * z0 / GRAVITY)
    analytic = (e * GRAVITY * (time - 2 * t1) + GRAVITY * (time - t1)) / (GRAVITY * t1)
    found = derivatives(time, steps, z0=z0, z1=0.0, gravity=GRAVITY)["z0"][2]
    # 800 roundings of 1e-16, amplified tenfold; 1e-6 would do.
    np.testing.assert_allclose(found, analytic, rtol=1e-12)
    difference = central_differences(time, steps, ["z0"], z0=z0, z1=0.0, gravity=GRAVITY)["z0"][2]
    # Truncation of h^2 and cancellation of 1e-16 / h at h = 1e-5.
    np.testing.assert_allclose(difference, analytic, rtol=1e-8)


def driven_collision(p, time):
    """Return the end of a ball under ``A sin(w t)`` that hits another head on, analytic in every number.

    The time of impact is found by Newton's method in complex numbers, so that a complex step differentiates it.
    """
    push = p["amplitude"] / p["mass0"]
    w = p["frequency"]

    def way(t):
        return p["x0"] + p["vx0"] * t + push * (t / w - np.sin(w * t) / w**2)

    def speed(t):
        return p["vx0"] + push * (1 - np.cos(w * t)) / w

    t = 0.3 + 0j
    for _ in range(60):
        gap = p["x1"] + p["vx1"] * t - way(t) - p["radius0"] - p["radius1"]
        t = t - gap / (p["vx1"] - speed(t))
    impulse = (1 + p["restitution"]) * (speed(t) - p["vx1"]) / (1 / p["mass0"] + 1 / p["mass1"])
    left = time - t
    first = way(time) - impulse / p["mass0"] * left
    return np.array([first, p["x1"] + p["vx1"] * time + impulse / p["mass1"] * left])


@pytest.mark.usefixtures("x64")
def test_derivatives_through_an_impact_of_two_balls_under_a_periodic_force_are_the_analytic_ones():
    changes = {"vx0": 0.5, "x1": 0.7, "vx1": -0.4, "mass1": 0.8, "amplitude": 1.5, "frequency": 6.0}
    p, time = {**EVENT_DEFAULTS, **changes}, 1.0
    expected = np.real(driven_collision(p, time))
    names = ("x0", "vx0", "x1", "vx1", "mass0", "mass1", "radius0", "radius1", "restitution", "amplitude", "frequency")
    for steps in (100, 1000):
        time_step = time / steps
        # The quadratic misses the sine by at most 0.008 (w dt)^3 of its size, 3 m/s^2. The derivative of a velocity at
        # an impact sees that once, times ways of a meter or two at 1 m/s; the position sees it over one step.
        tolerance = 0.05 * (p["frequency"] * time_step) ** 3
        seen, found = end(time, steps, **changes), derivatives(time, steps, **changes)
        assert seen["impacts"] == 1
        np.testing.assert_allclose(seen["position"][:, 0], expected, atol=tolerance * time_step)
        for name in names:
            analytic = np.imag(driven_collision({**p, name: p[name] + 1e-30j}, time)) / 1e-30
            np.testing.assert_allclose(found[name][[0, 3]], analytic, atol=tolerance, rtol=tolerance, err_msg=name)


EVERYTHING = {
    "z0": 1.0,
    "gravity": GRAVITY,
    "vx0": 2.0,
    "x1": 1.2,
    "y1": 0.03,
    "z1": 0.0,
    "radius1": 0.15,
    "mass1": 0.8,
    "friction": 0.3,
    "spin0": -30.0,
    "restitution": 0.7,
    "amplitude": 0.5,
    "lift": 0.3,
    "frequency": 7.0,
}


@pytest.mark.usefixtures("x64")
def test_derivatives_through_every_kind_of_event_equal_central_differences():
    seen, found = end(1.0, 100, **EVERYTHING), derivatives(1.0, 100, **EVERYTHING)
    assert seen["impacts"] == 7
    # The second ball stands on the floor: to lower or to lift it are two different things.
    names = [name for name in EVENT_DEFAULTS if name != "z1"]
    for name, difference in central_differences(1.0, 100, names, **EVERYTHING).items():
        # Truncation at h = 1e-5 of third derivatives that are up to 1e4 times the first, through seven impacts.
        scale = 1 + np.abs(found[name]).max()
        np.testing.assert_allclose(found[name] / scale, difference / scale, atol=1e-6, err_msg=name)
