"""Combinations of method, dimension, motion, scalar, friction and time step of bodies: each runs or is refused."""

import jax
import jax.numpy as jnp
import pytest

from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from tests.flow.test_obstacle_combinations import RUN, case

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("row", RUN, ids=lambda row: ", ".join(map(str, row)))
def test_combination_runs_and_stays_solenoidal(row):
    equations = case(*row)
    grid, held = equations.domain.grid, equations.obstacle
    start, step = stepper(equations)
    params = {"time_step": jnp.asarray(0.01), "drift": jnp.asarray(0.5)}
    held.check(params)
    scalar = () if equations.scalar is None else jnp.zeros(grid.cells)
    velocity = tuple(jnp.full(grid.shape(i), 1.0 if i == 0 else 0.0) for i in range(grid.dimension))
    first = jax.jit(start)(velocity, params, scalar)
    state = jax.jit(lambda s: jax.lax.scan(lambda s, _: (step(s, params), None), s, None, length=8)[0])(first)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state))
    assert jnp.max(jnp.abs(divergence(state.velocity, grid))) < 1e-12
    # The stream drags the body along, and the body warms the fluid.
    assert held.load_on("ball", state.load)[0] > 0
    if equations.scalar is not None:
        assert held.heat_of("ball", state.load) > 0
