import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.diagnosis.measures import courant_number, interpolate, kinetic_energy, mean_velocity, speed
from tests.flow.flows import inner, noise, on_every_channel, on_every_domain, uniform_channel

pytestmark = pytest.mark.usefixtures("x64")


@on_every_channel
def test_interpolation_of_a_cubic_profile_is_exact(walls):
    axis = walls.grid.axes[1]
    y = axis.centers
    profile = jnp.asarray(0.7 + 0.3 * y - 1.2 * y**2 + 0.9 * y**3)
    # Interpolation weights below 2 in size, four roundings.
    assert interpolate(profile, 0.0, axis) == pytest.approx(0.7, abs=1e-14)
    assert interpolate(profile, 0.5, axis) == pytest.approx(0.7 + 0.15 - 0.3 + 0.1125, abs=1e-14)


@on_every_domain
def test_kinetic_energy_is_half_the_square_of_the_velocity(place):
    velocity = noise(place.grid, 0)
    expected = float(inner(velocity, velocity, place.grid)) / 2
    assert kinetic_energy(velocity, place.grid) == pytest.approx(expected, rel=1e-14)


@on_every_channel
def test_mean_velocity_of_a_constant_is_the_constant(walls):
    velocity = jnp.full(walls.grid.shape(0), 0.3), jnp.zeros(walls.grid.shape(1))
    assert mean_velocity(velocity, 0, walls.grid) == pytest.approx(0.3, rel=1e-14)


def test_courant_number_counts_the_cells_crossed_in_one_step():
    grid = uniform_channel((8, 10), 2.0).grid
    u = jnp.full(grid.shape(0), -1.5)
    v = jnp.zeros(grid.shape(1)).at[:, 4:6].set(0.5)
    # 1.5 * 0.1/0.25 along and 0.5 * 0.1/0.2 across in the cell between the two faces.
    assert courant_number((u, v), jnp.asarray(0.1), grid) == pytest.approx(0.6 + 0.25, rel=1e-14)
    assert jnp.max(speed((u, v), grid)) == pytest.approx(np.hypot(1.5, 0.5), rel=1e-14)
