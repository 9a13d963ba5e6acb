"""Bodies on prescribed motions: loads, momentum, frames of reference, derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles import Body, Motion, bodies_in, points_around, superellipse
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step

pytestmark = pytest.mark.usefixtures("x64")

METHODS = ("immersed_boundary", "direct_forcing")
BOX = domain((periodic_axis(20, 1.25), periodic_axis(16, 1.0)), (None, None))
STEPS = 10
# An ellipse of 8 x 6.4 cells that may drift, swing to and fro, and turn about a point that is not its center.
PARAMS = {
    "stream": 0.0,
    "x": 0.625,
    "y": 0.5,
    "drift": 0.0,
    "amplitude": 0.0,
    "frequency": 4.0,
    "turning": 0.0,
    "time_step": 0.02,
}


def ellipse():
    def position(p, t):
        return p["x"] + p["drift"] * t + p["amplitude"] * jnp.sin(p["frequency"] * t), p["y"]

    motion = Motion(position, angle=lambda p, t: p["turning"] * jnp.sin(p["frequency"] * t))
    shape = superellipse((0.05, 0.02), (0.25, 0.2))
    return Body(lambda p: shape, lambda p: (0.0, 0.0), motion=motion, points=points_around(1.4, 1 / 16))


@functools.cache
def swimming(method):
    """Loads, total momentum and the last state of a run, as a function of all parameters."""
    held = bodies_in(BOX, method, {"ellipse": ellipse()}, 0.02)
    start, step = stepper(Equations(BOX, 0.02, fixed_time_step, obstacle=held))

    def run(params):
        params = {name: jnp.asarray(value) for name, value in params.items()}
        first = start((jnp.full(BOX.grid.shape(0), params["stream"]), jnp.zeros(BOX.grid.shape(1))), params)

        def advance(state, _):
            state = step(state, params)
            momentum = [jnp.sum(f * control_volumes(i, BOX.grid)) for i, f in enumerate(state.velocity)]
            return state, (state.time[0], state.load, jnp.stack(momentum))

        state, history = jax.lax.scan(advance, first, None, length=STEPS)
        return history, state

    return jax.jit(run)


@pytest.mark.parametrize("method", METHODS)
def test_fluid_gains_the_momentum_given_by_a_moving_body_and_stays_solenoidal(method):
    values = PARAMS | {"amplitude": 0.03, "turning": 0.3, "drift": 0.2}
    (times, loads, momentum), state = swimming(method)(values)
    assert jnp.max(jnp.abs(divergence(state.velocity, BOX.grid))) < 1e-12
    # What the body loses, all fluid gains, but for that inside, which is carried along: its area times the velocity of
    # its centroid, which turns about the pivot.
    area = np.pi * 0.25 * 0.2

    def inside(t):
        w, phase = values["frequency"], values["frequency"] * t
        angle, rate = 0.3 * np.sin(phase), 0.3 * w * np.cos(phase)
        x, y = 0.05 * np.cos(angle) - 0.02 * np.sin(angle), 0.05 * np.sin(angle) + 0.02 * np.cos(angle)
        return area * np.array([0.2 + 0.03 * w * np.cos(phase) - rate * y, rate * x])

    for k in range(1, STEPS):
        gained = (momentum[k] - momentum[k - 1]) - (inside(times[k]) - inside(times[k - 1]))
        # The area on the grid, 13 x 10 cells of a curved body, is 3e-5 off: of forces of about 1.
        np.testing.assert_allclose(loads[k, :2], -gained / 0.02, atol=2e-3)


def test_load_on_a_body_moving_through_fluid_at_rest_is_that_on_one_at_rest_in_a_stream():
    moving = swimming("immersed_boundary")(PARAMS | {"drift": -1.0})[0][1]
    resting = swimming("immersed_boundary")(PARAMS | {"stream": 1.0})[0][1]
    # Between places on the grid, 7 cells across: measured 1.1 % of the drag, 0.15 % of it in lift and torque.
    np.testing.assert_allclose(moving[1:, 0], resting[1:, 0], rtol=0.015)
    np.testing.assert_allclose(moving[1:, 1:], resting[1:, 1:], atol=0.003 * float(resting[-1, 0]))


@pytest.mark.parametrize("method", METHODS)
def test_crossing_the_ends_of_periodic_axes_does_not_change_the_load(method):
    motion = {"drift": 1.5, "turning": 0.5, "stream": 0.3}
    inside = swimming(method)(PARAMS | motion)[0][1]
    # By 10 and 8 cells: the same places between the points of the grid.
    across = swimming(method)(PARAMS | motion | {"x": 1.25, "y": 1.0})[0][1]
    assert jnp.max(jnp.abs(inside)) > 0.1
    np.testing.assert_allclose(across, inside, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_with_respect_to_a_motion_equal_central_differences(method):
    run, values = swimming(method), PARAMS | {"amplitude": 0.03, "turning": 0.3, "stream": 0.5}

    def work(params):
        return jnp.sum(run(params)[0][1] @ jnp.array([1.0, 2.0, 3.0]))

    found = jax.jit(jax.grad(work))({name: jnp.asarray(value) for name, value in values.items()})
    for name in ("amplitude", "frequency", "turning", "x"):
        # Weights of direct forcing fall over half a cell, 0.03: their third derivatives are 60/0.03^3.
        h = 1e-6
        ahead, behind = (work(values | {name: values[name] + way * h}) for way in (1, -1))
        np.testing.assert_allclose(found[name], (ahead - behind) / (2 * h), rtol=2e-5, err_msg=name)
