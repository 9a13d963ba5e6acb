import jax
import jax.numpy as jnp
import pytest

from simkit.flow.operators import divergence, gradient
from simkit.flow.pressure import pressure_solver
from tests.flow.flows import GRIDS, noise, on_every_grid


@on_every_grid
def test_pressure_inverts_the_discrete_laplacian(grid, x64):
    source = jax.random.normal(jax.random.key(0), grid.cells)
    source -= jnp.sum(source * grid.heights) / (2 * grid.cells[0])
    pressure = pressure_solver(grid)(source)
    residual = divergence(gradient(pressure, grid), grid) - source
    # Rounding of the pressure, about 1e-16, is magnified by the largest eigenvalue, at most 8/min(dx, dy)^2 = 3000.
    assert jnp.max(jnp.abs(residual)) < 1e-12
    assert abs(jnp.sum(pressure * grid.heights)) < 1e-13


@on_every_grid
def test_pressure_is_recovered_from_its_laplacian(grid, x64):
    pressure = jax.random.normal(jax.random.key(1), grid.cells)
    pressure -= jnp.sum(pressure * grid.heights) / (2 * grid.cells[0])
    found = pressure_solver(grid)(divergence(gradient(pressure, grid), grid))
    # Rounding 1e-16 times the condition number, at most 3000/2.4.
    assert jnp.allclose(found, pressure, rtol=0, atol=1e-12)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@on_every_grid
def test_projection_leaves_no_divergence_beyond_round_off(grid, precision, x64):
    velocity = noise(grid, 2, jnp.dtype(precision))
    pressure = pressure_solver(grid)(divergence(velocity, grid))
    projected = jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid))
    assert projected[0].dtype == precision
    # Divergence is differences of velocities of size 3, each known to eps, over cells of width w. The transforms sum up
    # to 17 products and contribute as many roundings of the source, which is as large as the velocity over w.
    width = min(grid.dx, grid.heights.min())
    round_off = 20 * 3 * jnp.finfo(precision).eps / width
    assert jnp.max(jnp.abs(divergence(velocity, grid))) > 1
    assert jnp.max(jnp.abs(divergence(projected, grid))) < round_off


def test_mean_of_the_source_is_ignored(x64):
    for grid in GRIDS.values():
        # Rounding only: the constant is orthogonal to every mode that is solved for.
        assert jnp.max(jnp.abs(pressure_solver(grid)(jnp.ones(grid.cells)))) < 1e-13
