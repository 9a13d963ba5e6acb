"""Derivatives through bounces against a closed form, evaluated event by event and differentiated without JAX."""

import functools
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid import bouncing_ball
from simkit.scenario.catalog import find_scenario

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key_data(jax.random.key(0))
SCENARIO = Path(__file__).parents[2] / "scenarios" / "rigid" / "bouncing_ball.toml"
WITH_RESPECT_TO = (
    "launch_speed",
    "launch_angle",
    "launch_height",
    "spin",
    "restitution",
    "friction",
    "radius",
    "gravity",
)
THROW = {
    "launch_speed": 4.0,
    "launch_angle": 60.0,
    "launch_height": 1.0,
    "spin": -30.0,
    "restitution": 0.75,
    "friction": 0.06,
    "radius": 0.1,
    "gravity": 9.81,
}


def closed_form(
    duration, launch_speed, launch_angle, launch_height, spin, restitution, friction, radius, gravity, impacts=2000
):
    """Return x and the height of the lowest point: one parabola and one impact after the other, then sliding.

    Every formula is analytic, so a complex step in one argument gives the derivative to rounding.
    """
    angle = launch_angle * np.pi / 180
    x, z, u, w = 0.0, launch_height + 0j, launch_speed * np.cos(angle), launch_speed * np.sin(angle)
    left = duration
    for _ in range(impacts):
        fall = (w + np.sqrt(w * w + 2 * gravity * z)) / gravity
        if np.real(fall) > np.real(left):
            return x + u * left, z + w * left - gravity * left**2 / 2
        x, z, w, left = x + u * fall, 0.0, w - gravity * fall, left - fall
        slip = u - radius * spin
        direction = np.sign(np.real(slip))
        tangential = -2 / 7 * slip
        if abs(np.real(tangential)) > np.real(-friction * (1 + restitution) * w):
            tangential = direction * friction * (1 + restitution) * w
        u, spin, w = u + tangential, spin - 5 / 2 * tangential / radius, -restitution * w
    # What bounces are left are smaller than any number: the ball slides with constant deceleration, then rolls.
    slip = u - radius * spin
    deceleration = np.sign(np.real(slip)) * friction * gravity
    stop = 2 / 7 * slip / deceleration if np.real(slip) and np.real(friction) else 0.0
    stop = left if np.real(stop) > np.real(left) else stop
    return x + u * left - deceleration * stop * (left - stop / 2), 0.0


def closed_form_derivatives(duration, throw):
    """Return d(x, z)/d(parameter) by a complex step, which has no truncation and no cancellation."""
    step = 1e-30
    return {
        name: np.imag(closed_form(duration, **{**throw, name: throw[name] + 1j * step})) / step
        for name in WITH_RESPECT_TO
    }


def simulated(duration, steps):
    """Return ``throw -> (x, z)`` by the simulation; ``steps`` may be traced, then only forward mode works."""
    simulation = bouncing_ball()

    def run(throw):
        params = {**simulation.params, **throw, "time_step": jnp.asarray(duration / steps)}
        state = simulation.init(params, KEY)
        state = jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)
        seen = simulation.diagnose(state, params)
        return jnp.stack([seen["position_x"], seen["height"]])

    return run


@functools.cache
def compiled_forward():
    def run(throw, duration, steps):
        end = simulated(duration, steps)
        return end(throw), jax.jacfwd(end)(throw)

    return jax.jit(run)


def as_arrays(throw):
    return {name: jnp.asarray(value) for name, value in throw.items()}


def ends_and_derivatives(throw, duration, steps):
    return jax.tree.map(np.asarray, compiled_forward()(as_arrays(throw), duration, steps))


def test_the_derivative_of_the_height_through_one_bounce_is_the_analytic_one():
    # Dropped from z0: impact at t1 = sqrt(2 z0 / g) with speed g t1, then z = e g t1 (T - t1) - g (T - t1)^2 / 2.
    z0, e, g, time = 1.0, 0.8, 9.81, 0.8
    t1 = np.sqrt(2 * z0 / g)
    dt1_dz0 = 1 / (g * t1)
    analytic = (e * g * (time - 2 * t1) + g * (time - t1)) * dt1_dz0
    throw = {**THROW, "launch_speed": 0.0, "spin": 0.0, "launch_height": z0, "restitution": e, "gravity": g}
    for steps in (800, 200, 80):
        derivative = ends_and_derivatives(throw, time, steps)[1]["launch_height"][1]
        # 800 roundings of 1e-16, amplified tenfold; 1e-6 would do.
        np.testing.assert_allclose(derivative, analytic, rtol=1e-11)
        h = 6e-6
        above, below = (ends_and_derivatives({**throw, "launch_height": z0 + d}, time, steps)[0][1] for d in (h, -h))
        # Truncation of h^2 and cancellation of 1e-16 / h.
        np.testing.assert_allclose((above - below) / (2 * h), analytic, rtol=1e-6)


THROWS = {
    "six bounces, of which the first four slip": THROW,
    "gripping at once": {**THROW, "friction": 0.8},
    "slipping all the way": {**THROW, "friction": 0.02, "spin": 200.0},
    "elastic": {**THROW, "restitution": 1.0, "friction": 0.03},
    "nearly elastic and tiny": {**THROW, "restitution": 0.999, "launch_height": 1e-3, "launch_speed": 0.3},
    "to rest, then sliding": {**THROW, "restitution": 0.4, "friction": 0.02, "spin": -150.0},
    "to rest, then rolling": {**THROW, "restitution": 0.4, "friction": 0.1},
    "downwards": {**THROW, "launch_angle": -50.0, "restitution": 0.6},
}


@pytest.mark.parametrize("name", THROWS)
def test_positions_and_derivatives_through_many_bounces_are_those_of_the_closed_form(name):
    throw, duration = THROWS[name], 3.6
    expected, derivatives = closed_form(duration, **throw), closed_form_derivatives(duration, throw)
    for steps in (1, 360, 900, 3600):
        value, forward = ends_and_derivatives(throw, duration, steps)
        # Rounding alone separates the two: up to 3600 steps of a dozen operations on numbers of order 1 to 10.
        np.testing.assert_allclose(value, np.real(expected), atol=1e-11)
        for parameter in WITH_RESPECT_TO:
            scale = 1 + np.abs(derivatives[parameter])
            assert np.max(np.abs(forward[parameter] - derivatives[parameter]) / scale) < 1e-10, (parameter, steps)


def test_reverse_mode_forward_mode_and_central_differences_agree():
    duration, steps = 3.6, 360
    run = simulated(duration, steps)
    reverse_mode = jax.jit(jax.jacrev(run))
    for name, throw in THROWS.items():
        reverse, forward = reverse_mode(as_arrays(throw)), ends_and_derivatives(throw, duration, steps)[1]
        for parameter in WITH_RESPECT_TO:
            scale = 1 + np.abs(forward[parameter])
            # The two modes add the same products in another order.
            assert np.max(np.abs(reverse[parameter] - forward[parameter]) / scale) < 1e-11, (name, parameter)
            if parameter == "restitution" and throw[parameter] == 1:
                continue  # a difference would reach beyond the largest restitution
            h = 1e-6 * (abs(throw[parameter]) or 1)
            above, below = (
                ends_and_derivatives({**throw, parameter: throw[parameter] + d}, duration, steps)[0] for d in (h, -h)
            )
            difference = (above - below) / (2 * h)
            # Truncation at 1e-12 of third derivatives of up to 1e5, cancellation of 360 roundings of 1e-16 over 1e-6.
            assert np.max(np.abs(difference - forward[parameter]) / scale) < 1e-6, (name, parameter)


def test_the_derivative_at_no_restitution_is_the_limit_of_that_at_little():
    # A little restitution only moves friction from the impact to the bounces after it: to first order, nothing.
    throw = {**THROW, "friction": 0.02, "restitution": 0.0}
    derivative = ends_and_derivatives(throw, 3.6, 36)[1]
    small = closed_form_derivatives(3.6, {**throw, "restitution": 1e-7})
    # The second derivative, of order 10, times 1e-7.
    np.testing.assert_allclose(derivative["restitution"], small["restitution"], atol=1e-5)
    np.testing.assert_allclose(derivative["friction"], small["friction"], atol=1e-5)


def test_the_numbers_in_the_scenario_file_are_those_of_the_closed_form():
    scenario = tomllib.loads(SCENARIO.read_text())
    parameters = find_scenario("bouncing_ball").parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    throw = {name: defaults[name] for name in WITH_RESPECT_TO}
    duration = scenario["run"]["steps"] * defaults["time_step"]

    def stated(**keys):
        (entry,) = [entry for entry in scenario["validation"] if keys.items() <= entry.items()]
        return entry["expected"]

    # The last digits written there are those of one order of the additions.
    assert np.isclose(stated(quantity="position_x"), np.real(closed_form(duration, **throw)[0]), rtol=1e-13)
    slope = closed_form_derivatives(duration, throw)["launch_speed"][0]
    assert np.isclose(stated(derivative="launch_speed"), slope, rtol=1e-13)
    assert stated(quantity="apex_ratio") == throw["restitution"] ** 10

    # The launch speed said to reach the target does, to the digits given times dx/dv of about 2 s.
    solution = float(parameters["launch_speed"].doc.split()[4])
    reached = closed_form(duration, **{**throw, "launch_speed": solution})[0]
    assert abs(np.real(reached) - defaults["target"]) < 2e-9
