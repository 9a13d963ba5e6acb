"""Random eddies between two walls, as an initial velocity."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.operators.differences import curl

SHORTEST_WAVELENGTH = 0.75
WAVES_ACROSS = 3


def random_eddies(grid: Grid, key: jax.Array, dtype: jnp.dtype) -> Velocity:
    """Return a smooth random plane velocity with no divergence, no slip on the walls and root-mean-square speed 1.

        u = dpsi/dy,   v = -dpsi/dx,   s = (y - y_lower)/H,
        psi = sum over k, q of a sin(q s) sin(pi s) cos(k x + phase) / (k^2 + (q/H)^2)

    with normal random amplitudes a, so that large eddies are faster than small ones. k runs over the wavelengths that
    fit the period and are at least 3/4 of the height H (and four cells) long, q over pi, 2 pi and 3 pi. psi and its
    slope vanish on the walls, and its differences between the corners of the cells have no divergence beyond round-off.

    Args:
        grid: periodic along x, bounded along y.
        key: random key.
        dtype: floating-point type of the velocity.
    """
    along, across = grid.axes
    waves_along = min(max(int(along.length / (SHORTEST_WAVELENGTH * across.length)), 1), along.cells // 4)
    k = 2 * math.pi / along.length * np.arange(1, waves_along + 1)
    q = math.pi * np.arange(1, min(WAVES_ACROSS, across.cells // 4) + 1)
    phase = k * (along.points - along.faces[0])[:, None]
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    height = (across.faces[:, None] - across.faces[0]) / across.length
    profiles = np.sin(q * height) * np.sin(math.pi * height)
    profiles[-1] = 0.0
    weights = np.tile(1 / (k[:, None] ** 2 + (q / across.length) ** 2), (2, 1))

    amplitudes = jax.random.normal(key, weights.shape, dtype)
    weighted = amplitudes * like(amplitudes, weights)
    stream = precise_product(like(amplitudes, waves), weighted, like(amplitudes, profiles.T))
    velocity = curl(stream, grid)
    scale = jnp.sqrt(2 * kinetic_energy(velocity, grid))
    return tuple(f / scale for f in velocity)
