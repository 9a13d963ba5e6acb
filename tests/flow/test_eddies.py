import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import no_motion
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import shear
from tests.flow.flows import CHANNELS, some, uniform_channel
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@functools.partial(jax.jit, static_argnums=0)
def eddies(grid, seed):
    return random_eddies(grid, jax.random.key(seed), jnp.float64)


@functools.cache
def of(walls):
    """Eddies in a channel, and what the claims are about, from one program."""
    grid = walls.grid

    @jax.jit
    def numbers():
        velocity = eddies(grid, 0)
        slope = shear(velocity[0], 0, 1, no_motion(walls), walls)
        return velocity, divergence(velocity, grid), kinetic_energy(velocity, grid), slope

    return numbers()


@every(some(CHANNELS, "even", "stretched"))
def test_eddies_have_no_mean_flow(walls):
    velocity, _, _, slope = of(walls)
    # Every wave has zero mean along the channel; 16 roundings of numbers below 10.
    assert np.max(np.abs(np.mean(velocity[0], axis=0))) < 1e-13
    assert np.max(np.abs(np.mean(slope, axis=0))) < 1e-11


def test_eddies_do_not_slip_on_the_walls():
    def slip(ny):
        u = np.asarray(eddies(uniform_channel((16, ny), 4.0).grid, 0)[0])
        # The straight line through the two nearest points, continued to the wall.
        return np.max(np.abs(1.5 * u[:, [0, -1]] - 0.5 * u[:, [1, -2]]))

    # The waves are odd about the wall, so what the straight line misses falls with the cube of the cell height.
    assert np.log2(slip(64) / slip(128)) == pytest.approx(3, abs=0.1)
