"""Random eddies between two walls, to start a flow with."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import ChannelGrid
from simkit.flow.measures import kinetic_energy
from simkit.flow.modes import matmul
from simkit.flow.operators import Velocity, below, like, west

SHORTEST_WAVELENGTH = 1.5
WAVES_ACROSS = 3


def random_eddies(grid: ChannelGrid, key: jax.Array, dtype: jnp.dtype) -> Velocity:
    """Return a smooth random velocity with no divergence, no slip on the walls and root-mean-square speed 1.

        u = dpsi/dy,   v = -dpsi/dx,
        psi = sum over k, q of a sin(q (y + 1)) sin(pi (y + 1)/2) cos(k x + phase) / (k^2 + q^2)

    with normal random amplitudes a, so that large eddies are faster than small ones. k runs over the wavelengths that
    fit the period and are at least 1.5 h (and four cells) long, q over pi/2, pi and 3 pi/2. psi and its slope vanish on
    the walls, and its differences between the corners of the cells have no divergence beyond round-off.

    Args:
        grid: the grid.
        key: random key.
        dtype: floating-point type of the velocity.
    """
    nx, ny = grid.cells
    waves_along = min(max(int(grid.length / SHORTEST_WAVELENGTH), 1), nx // 4)
    k = 2 * math.pi / grid.length * np.arange(1, waves_along + 1)
    q = math.pi / 2 * np.arange(1, min(WAVES_ACROSS, ny // 4) + 1)
    phase = k * grid.dx * np.arange(1, nx + 1)[:, None]
    along = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    height = grid.faces[1:, None] + 1
    across = np.sin(q * height) * np.sin(math.pi / 2 * height)
    across[-1] = 0.0
    weights = np.tile(1 / (k[:, None] ** 2 + q**2), (2, 1))

    amplitudes = jax.random.normal(key, weights.shape, dtype)
    weighted = amplitudes * like(amplitudes, weights)
    psi = matmul(matmul(like(amplitudes, along), weighted), like(amplitudes, across.T))
    u = (psi - below(psi)) / like(psi, grid.heights)
    v = (west(psi) - psi) / grid.dx
    speed = jnp.sqrt(2 * kinetic_energy((u, v), grid))
    return u / speed, v / speed
