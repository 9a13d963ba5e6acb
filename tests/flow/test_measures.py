import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import uniform_grid
from simkit.flow.measures import centerline, courant_number, flow_rate, kinetic_energy
from tests.flow.flows import inner, noise, on_every_grid, on_uniform_grids

pytestmark = pytest.mark.usefixtures("x64")


@on_every_grid
def test_centerline_of_a_cubic_profile_is_exact(grid):
    profile = jnp.asarray(0.7 + 0.3 * grid.y - 1.2 * grid.y**2 + 0.9 * grid.y**3)
    # Interpolation weights below 2 in size, four roundings.
    assert centerline(profile, grid) == pytest.approx(0.7, abs=1e-14)


@on_uniform_grids
def test_flow_rate_of_couette_poiseuille_flow_is_exact(grid):
    u = jnp.broadcast_to(jnp.asarray(1.5 * (1 - grid.y**2) + 0.4 * (1 + grid.y) / 2), grid.cells)
    # 1 from the parabola, half the wall velocity from the straight line; at most 17 roundings.
    assert flow_rate(u, (0.0, 0.4), grid) == pytest.approx(1.2, abs=1e-14)


def test_flow_rate_is_fourth_order():
    def error(ny):
        grid = uniform_grid((4, ny), 1.0)
        u = jnp.broadcast_to(jnp.asarray(np.cos(np.pi * grid.y / 2)), grid.cells)
        return abs(float(flow_rate(u, (0.0, 0.0), grid)) - 2 / np.pi)

    # The slope at the wall is known to second order only, so the correction of size h^2 is known to fourth.
    assert np.log2(error(32) / error(64)) == pytest.approx(4, abs=0.1)


@on_every_grid
def test_kinetic_energy_is_half_the_square_of_the_velocity(grid):
    velocity = noise(grid, 0)
    assert kinetic_energy(velocity, grid) == pytest.approx(float(inner(velocity, velocity, grid)) / 2, rel=1e-14)


def test_courant_number_counts_the_cells_crossed_in_one_step():
    grid = uniform_grid((8, 10), 2.0)
    u = jnp.full(grid.cells, -1.5)
    v = jnp.zeros(grid.cells).at[:, 3:5].set(0.5)
    # 1.5 * 0.1/0.25 along and 0.5 * 0.1/0.2 across in the cell between the two faces.
    assert courant_number((u, v), jnp.asarray(0.1), grid) == pytest.approx(0.6 + 0.25, rel=1e-14)
