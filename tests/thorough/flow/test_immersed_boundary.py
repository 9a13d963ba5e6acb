import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles.outline import outline
from simkit.flow.obstacles.shapes import rotate, superellipse
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.test_immersed_boundary import body

pytestmark = pytest.mark.usefixtures("x64")

FORCE = (0.7, 0.2)


@functools.cache
def after_some_steps():
    """The state of a flow that is driven past a body in a periodic box, as a function of all parameters."""
    place = domain((periodic_axis(20, 1.25), periodic_axis(16, 1.0)), (None, None))
    equations = Equations(place, lambda p: 0.02, fixed_time_step, force=lambda *_: FORCE, obstacle=body(place))
    start, step = stepper(equations)

    def state(params):
        velocity = jnp.ones(place.grid.shape(0)), jnp.zeros(place.grid.shape(1))
        return jax.lax.scan(lambda s, _: (step(s, params), None), start(velocity, params), None, length=8)[0]

    return place, jax.jit(state), jax.jit(step), jax.jit(jax.grad(lambda p: state(p).load @ jnp.array([1.0, 2.0, 3.0])))


# The center lies on faces.
PARAMS = {"time_step": 0.03, "x": 0.625, "y": 0.5, "half_axis": 0.2, "angle": 0.3}


def test_derivatives_with_respect_to_the_body_equal_central_differences():
    _, state, _, derivative = after_some_steps()
    # Rounding: 1e-16/h = 1e-10; the third derivative of the kernel is 1e3 times the first in units of 1/16: 1e-9.
    found, weights, h = derivative(PARAMS), jnp.array([1.0, 2.0, 3.0]), 1e-6
    for name in ("x", "y", "half_axis", "angle"):
        ahead, behind = (state(PARAMS | {name: PARAMS[name] + way * h}).load @ weights for way in (1, -1))
        np.testing.assert_allclose(found[name], (ahead - behind) / (2 * h), rtol=1e-6, err_msg=name)


def test_force_depends_smoothly_on_the_position_of_the_body_in_a_cell():
    """In a periodic box all positions are equivalent: every change is noise of the grid."""
    _, state, _, _ = after_some_steps()
    offsets = np.linspace(0, 1, 8, endpoint=False) / 16
    values = {name: jnp.asarray(value) for name, value in PARAMS.items()}

    def loads(offset):
        return state(values | {"x": values["x"] + offset, "y": values["y"] + 0.37 * offset}).load

    drag, lift, _ = np.array([loads(offset) for offset in offsets]).T
    # Measured with this body of 8 x 6.4 cells: 1.07e-3 and, of the drag, 7.6e-4.
    assert np.ptp(drag) / drag.mean() < 1.5e-3
    assert np.ptp(lift) / drag.mean() < 1.5e-3


def test_a_body_across_the_ends_of_a_periodic_box_has_the_load_of_one_in_its_middle():
    _, state, _, _ = after_some_steps()
    # Ten cells apart.
    np.testing.assert_allclose(state(PARAMS | {"x": 0.0}).load, state(PARAMS).load, rtol=1e-9)


@functools.cache
def load_of_a_step():
    """Return ``params -> load`` of a step from a shared state, and the same with a ``hold`` of the parameters."""
    place, state, step, _ = after_some_steps()
    start, _ = stepper(Equations(place, lambda p: 0.02, fixed_time_step, force=lambda *_: FORCE, obstacle=body(place)))
    before = state(PARAMS)

    def load(params):
        return step(before, params).load

    @jax.jit
    def load_as_from_a_new_start(params):
        return step(dataclasses.replace(before, hold=start(before.velocity, params).hold), params).load

    return load, load_as_from_a_new_start


CHANGED = {"x": 0.64, "y": 0.47, "half_axis": 0.17, "angle": 0.5, "time_step": 0.02}


@pytest.mark.parametrize("names", [[name] for name in CHANGED] + [list(CHANGED)], ids=[*CHANGED, "all"])
def test_a_step_under_other_parameters_is_that_of_a_body_prepared_for_them(names):
    load, expected = load_of_a_step()
    params = PARAMS | {name: CHANGED[name] for name in names}
    # The ridge, 1e-4 of the diagonal, stays that of the start: among the pressures inside the body it chooses others,
    # to which the load owes 1.5e-7 where the body becomes a sixth thinner.
    np.testing.assert_allclose(load(params), expected(params), rtol=1e-6, atol=1e-8)
    assert np.abs(load(params) - load(PARAMS)).max() > 1e-3


def test_driving_force_is_drag_plus_gained_momentum_to_round_off():
    place, state, step, _ = after_some_steps()
    before = state(PARAMS)
    after = step(before, PARAMS)
    for i, force in enumerate(FORCE):
        gained = jnp.sum((after.velocity[i] - before.velocity[i]) * control_volumes(i, place.grid)) / after.time_step
        assert abs(force * place.grid.volume - after.load[i] - gained) < 1e-12
    assert jnp.max(jnp.abs(divergence(after.velocity, place.grid))) < 1e-12


def test_derivatives_of_the_outline_equal_central_differences():
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(2, 12)))

    def total(p):
        body = rotate(superellipse((p[0], 0.47), (p[1], 0.12)), p[2], (p[0], 0.47))
        found = outline(body, (p[0], 0.47), 12, 0.8)
        return jnp.sum(weights * (found.points + found.normals)) + found.spacing[0]

    p, h = np.array([0.5, 0.3, 0.4]), 1e-5
    value, derive = jax.jit(total), jax.jit(jax.grad(total))
    differences = [(value(p + h * e) - value(p - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(derive(p), differences, rtol=1e-6, atol=1e-7)
    differences = [(derive(p + h * e) - derive(p - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(jax.jit(jax.hessian(total))(p), differences, rtol=1e-6, atol=1e-6)
