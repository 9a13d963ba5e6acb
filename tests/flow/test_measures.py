import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.diagnosis.measures import courant_number, interpolate, kinetic_energy, mean_velocity, speed
from tests.flow.flows import CHANNELS, DOMAINS, inner, noise, over, some, uniform_channel

pytestmark = pytest.mark.usefixtures("x64")


@over(CHANNELS)
def test_interpolation_of_a_cubic_profile_is_exact(walls):
    axis = walls.grid.axes[1]
    y = axis.centers
    profile = jnp.asarray(0.7 + 0.3 * y - 1.2 * y**2 + 0.9 * y**3)
    # Interpolation weights below 2 in size, four roundings.
    found = jax.jit(lambda profile: [interpolate(profile, y, axis) for y in (0.0, 0.5)])(profile)
    assert found == pytest.approx([0.7, 0.7 + 0.15 - 0.3 + 0.1125], abs=1e-14)


@over(some(DOMAINS, "stretched", "cavity", "channel 3-D"))
def test_kinetic_energy_is_half_the_square_of_the_velocity(place):
    grid = place.grid
    energy, square = jax.jit(lambda v: (kinetic_energy(v, grid), inner(v, v, grid)))(noise(grid, 0))
    assert energy == pytest.approx(float(square) / 2, rel=1e-14)


@over(CHANNELS)
def test_mean_velocity_of_a_constant_is_the_constant(walls):
    velocity = jnp.full(walls.grid.shape(0), 0.3), jnp.zeros(walls.grid.shape(1))
    assert jax.jit(lambda v: mean_velocity(v, 0, walls.grid))(velocity) == pytest.approx(0.3, rel=1e-14)


def test_courant_number_counts_the_cells_crossed_in_one_step():
    grid = uniform_channel((8, 10), 2.0).grid
    u, v = np.full(grid.shape(0), -1.5), np.zeros(grid.shape(1))
    v[:, 4:6] = 0.5
    number, fastest = jax.jit(lambda v: (courant_number(v, jnp.asarray(0.1), grid), jnp.max(speed(v, grid))))((u, v))
    # 1.5 * 0.1/0.25 along and 0.5 * 0.1/0.2 across in the cell between the two faces.
    assert number == pytest.approx(0.6 + 0.25, rel=1e-14)
    assert fastest == pytest.approx(np.hypot(1.5, 0.5), rel=1e-14)
