"""Pressure sides on every kind of grid: energy, volume and the pressure equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.equations import Equations
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.test_open_sides import PLACES, on_every_place, params_of, solenoidal

pytestmark = pytest.mark.usefixtures("x64")


def test_equal_pressure_on_all_sides_does_not_change_the_flow():
    """A pressure that is equal on all open sides drives no flow, and is added to that inside."""
    place = PLACES["corner"]
    states = []
    for shared in (0.0, 3.0):
        model = Equations(
            place,
            "viscosity",
            fixed_time_step,
            side_pressure=lambda params, time, shared=shared: ((0.0, shared), (shared, 0.0)),
            method="adams_bashforth",
            implicit=(0, 1),
        )
        start, step = stepper(model)

        def run(start=start, step=step):
            params = params_of(viscosity=0.5, time_step=0.004)
            begin = start(jax.tree.map(lambda f: 0.1 * f, solenoidal(place, 2)), params)
            return jax.lax.fori_loop(0, 4, lambda _, s: step(s, params), begin)

        states.append(jax.jit(run)())
    for a, b in zip(states[0].velocity, states[1].velocity, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    np.testing.assert_allclose(states[1].pressure, states[0].pressure + 3, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@on_every_place
def test_flow_through_open_sides_has_no_divergence_and_outflow_equals_inflow(place, dtype):
    dtype = jnp.dtype(dtype)
    start, step = stepper(Equations(place, "viscosity", fixed_time_step, method="adams_bashforth", implicit=(1,)))
    params = {name: value.astype(dtype) for name, value in params_of(viscosity=0.05, time_step=0.002).items()}

    @jax.jit
    def after():
        begin = start(jax.tree.map(lambda f: 0.2 * f.astype(dtype), solenoidal(place, 3)), params)
        state = jax.lax.fori_loop(0, 20, lambda _, s: step(s, params), begin)
        return state, jnp.max(jnp.abs(divergence(state.velocity, place.grid)))

    state, most = after()
    assert state.pressure.dtype == dtype
    width = min(a.widths.min() for a in place.grid.axes)
    # As in test_stepper.py: differences of velocities of about 1, each known to its rounding, over the smallest cells.
    assert most < 40 * jnp.finfo(dtype).eps / width
    passed = [place.place(axis, side).flux(state.velocity) for axis, side in place.open_sides()]
    assert abs(sum(passed)) < 40 * jnp.finfo(dtype).eps
    # Through a single open side as much flows out as in.
    assert len(passed) == 1 or max(abs(f) for f in passed) > 1e-3
