import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import no_motion
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import shear
from tests.flow.flows import on_every_channel, uniform_channel


@on_every_channel
def test_eddies_are_solenoidal_and_have_unit_root_mean_square_speed(walls, x64):
    grid = walls.grid
    velocity = random_eddies(grid, jax.random.key(0), jnp.float64)
    # Differences of a stream function cancel exactly but for rounding, here of speeds below 10 over cells above 0.1.
    assert jnp.max(jnp.abs(divergence(velocity, grid))) < 1e-13
    assert 2 * kinetic_energy(velocity, grid) == pytest.approx(1, rel=1e-14)
    assert jnp.all(velocity[1][:, jnp.array([0, -1])] == 0)


def test_eddies_do_not_slip_on_the_walls(x64):
    def slip(ny):
        grid = uniform_channel((16, ny), 4.0).grid
        u, _ = random_eddies(grid, jax.random.key(0), jnp.float64)
        near = u[:, jnp.array([0, -1])]
        far = u[:, jnp.array([1, -2])]
        # The straight line through the two nearest points, continued to the wall.
        return float(jnp.max(jnp.abs(1.5 * near - 0.5 * far)))

    # The waves are odd about the wall, so what the straight line misses falls with the cube of the cell height.
    assert np.log2(slip(64) / slip(128)) == pytest.approx(3, abs=0.1)


def test_eddies_have_no_mean_flow(x64):
    walls = uniform_channel((16, 24), 4.0)
    u, _ = random_eddies(walls.grid, jax.random.key(1), jnp.float64)
    # Every wave has zero mean along the channel; 16 roundings of numbers below 10.
    assert jnp.max(jnp.abs(u.mean(axis=0))) < 1e-13
    assert jnp.max(jnp.abs(shear(u, 0, 1, no_motion(walls), walls).mean(axis=0))) < 1e-11


def test_eddies_follow_the_key():
    grid = uniform_channel((16, 12), 3.0).grid
    draws = [random_eddies(grid, jax.random.key(seed), jnp.float32)[0] for seed in (0, 0, 1)]
    assert jnp.array_equal(draws[0], draws[1])
    # Independent draws of unit root-mean-square differ by about sqrt(2).
    assert jnp.sqrt(jnp.mean((draws[0] - draws[2]) ** 2)) > 0.5
