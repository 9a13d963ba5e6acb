"""Correlations in space and time: the structure factor, velocities and displacements over a lag."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.molecular import spaces

# Phases that are computed at a time.
MOST_PHASES = 2**20


class WaveVectors(NamedTuple):
    """Wave vectors of a periodic cell, one of each pair k and -k, in shells of about equal length.

    Attributes:
        numbers: integer multiples of the reciprocal lattice vectors, (K, d).
        shell: index of the shell of each, (K,).
        length: mean length of the vectors of each shell, 1 / length, (shells,).
    """

    numbers: np.ndarray
    shell: np.ndarray
    length: np.ndarray


def wave_vectors(cell: np.ndarray, largest: float, bins: int) -> WaveVectors:
    """Return the wave vectors of a cell up to a length, in shells of equal width; shells without any are left out.

    Args:
        cell: sides (d,) or lattice vectors as rows (d, d), length.
        largest: length of the longest, 1 / length.
        bins: number of shells of equal width.

    Raises:
        UserError: if they are too many.

    Example:
        >>> shells = molecular.analysis.wave_vectors(np.array([2 * np.pi, 2 * np.pi]), largest=1.5, bins=3)
        >>> shells.numbers.tolist(), shells.length.round(3).tolist()
        ([[0, 1], [1, -1], [1, 0], [1, 1]], [1.207])
    """
    vectors = np.diag(cell) if np.ndim(cell) == 1 else np.asarray(cell, float)
    reciprocal = 2 * np.pi * np.linalg.inv(vectors).T
    grid = spaces.wave_numbers(vectors, largest, f"largest = {largest:g}", "write at most {:.2g}")
    # The first component that is not zero is positive.
    first = np.take_along_axis(grid, np.argmax(grid != 0, axis=1)[:, None], axis=1)[:, 0]
    length = np.linalg.norm(grid @ reciprocal, axis=1)
    chosen = (first > 0) & (length <= largest)
    numbers, length = grid[chosen], length[chosen]
    of_bin = np.minimum((length * (bins / largest)).astype(int), bins - 1)
    _, shell, count = np.unique(of_bin, return_inverse=True, return_counts=True)
    return WaveVectors(numbers, shell, np.bincount(shell, length, len(count)) / np.maximum(count, 1))


def structure_factor(position: jax.Array, cell: jax.Array, vectors: WaveVectors) -> jax.Array:
    """Return the static structure factor of one configuration, a mean over the wave vectors of each shell.

        S(k) = |sum_j exp(i k . x_j)|^2 / N

    An ideal gas has a mean of 1 at every wave vector, a crystal N at those of its reciprocal lattice.

    Args:
        position: length, (N, d); may lie outside the cell.
        cell: sides (d,) or lattice vectors as rows (d, d); wave vectors follow it.
        vectors: from `wave_vectors`.

    Returns:
        (shells,).

    Example:
        >>> shells = molecular.analysis.wave_vectors(np.array([2 * np.pi, 2 * np.pi]), largest=2.0, bins=2)
        >>> pair = jnp.array([[0.0, 0.0], [np.pi, 0.0]])
        >>> molecular.analysis.structure_factor(pair, jnp.full(2, 2 * np.pi), shells).round(3).tolist()
        [1.0]

    Reference: Hansen, McDonald, Theory of Simple Liquids, 4th ed., Academic Press (2013), section 4.1.
    """
    count = len(position)
    fraction = precise_product(position, spaces.inverse_of(spaces.lattice_vectors(cell)))
    fraction = fraction - jnp.floor(fraction)

    def intensity(numbers: jax.Array) -> jax.Array:
        phase = 2 * jnp.pi * jnp.sum(fraction * numbers, axis=1)
        return (jnp.sum(jnp.cos(phase)) ** 2 + jnp.sum(jnp.sin(phase)) ** 2) / count

    numbers = jnp.asarray(vectors.numbers, position.dtype)
    each = jax.lax.map(intensity, numbers, batch_size=min(len(numbers), max(1, MOST_PHASES // count)))
    members = np.bincount(vectors.shell, minlength=len(vectors.length))
    return jax.ops.segment_sum(each, vectors.shell, len(members)) / jnp.asarray(members, position.dtype)


def velocity_autocorrelation(velocity: jax.Array) -> jax.Array:
    """Return ``<v(t) . v(t - lag)>``, the mean over the particles, for all lags, (lags,).

    Args:
        velocity: at the last samples, the newest first, (lags, N, d), length / time.

    Example:
        >>> molecular.analysis.velocity_autocorrelation(jnp.array([[[1.0, 0.0]], [[0.5, 2.0]]])).tolist()
        [1.0, 0.5]
    """
    return jnp.mean(jnp.sum(velocity[0] * velocity, axis=-1), axis=-1)


def squared_displacement(position: jax.Array) -> jax.Array:
    """Return ``<|x(t) - x(t - lag)|^2>``, the mean over the particles, for all lags, (lags,).

    Args:
        position: at the last samples, the newest first, (lags, N, d), length, not wrapped into a cell.

    Example:
        >>> molecular.analysis.squared_displacement(jnp.array([[[3.0, 0.0]], [[0.0, 4.0]]])).tolist()
        [0.0, 25.0]
    """
    return jnp.mean(jnp.sum((position[0] - position) ** 2, axis=-1), axis=-1)


def diffusion_coefficient(squared: jax.Array, step: jax.Array, dimension: int) -> jax.Array:
    """Return the diffusion coefficient by Einstein's relation, ``<|x(t) - x(0)|^2> = 2 d D t`` at long times.

    The slope is that of a least-squares line through the second half of the lags.

    Args:
        squared: mean square displacement of each lag, (lags,), length^2, from no lag on.
        step: time between lags.
        dimension: of space, d.

    Returns:
        Length^2 / time.

    Example:
        >>> float(molecular.analysis.diffusion_coefficient(jnp.array([0.0, 4.0, 8.0, 12.0]), 0.5, dimension=2))
        2.0
    """
    late = np.arange(len(squared) // 2, len(squared))
    weights = late - late.mean()
    slope = jnp.sum(jnp.asarray(weights / np.sum(weights**2), squared.dtype) * squared[late]) / step
    return slope / (2 * dimension)


def integral(correlation: jax.Array, step: jax.Array) -> jax.Array:
    """Return the integral of a correlation over its lags by the trapezoidal rule.

    Args:
        correlation: (lags,), from no lag on.
        step: time between lags.
    """
    return step * (jnp.sum(correlation) - (correlation[0] + correlation[-1]) / 2)
