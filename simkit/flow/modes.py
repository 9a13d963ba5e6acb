"""Modes in which a discrete Laplacian of the channel is diagonal: Fourier in x, eigenvectors across the channel."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import ChannelGrid
from simkit.flow.operators import like


@dataclasses.dataclass(frozen=True, eq=False)
class Modes:
    """The eigenvectors of minus the discrete Laplacian for one kind of field.

    Attributes:
        eigenvalues: ``(nx // 2 + 1, ny)``, not negative, ascending along both axes, unit 1/h^2.
        analysis: ``(ny, ny)``, from values across the channel to amplitudes: ``amplitudes = values @ analysis``.
        synthesis: ``(ny, ny)``, back again: ``values = amplitudes @ synthesis``.
        points: number of points in x.
    """

    eigenvalues: np.ndarray
    analysis: np.ndarray
    synthesis: np.ndarray
    points: int


def laplacian_modes(grid: ChannelGrid, across: np.ndarray) -> Modes:
    """Return the modes of the three-point second difference in x plus a tridiagonal matrix across the channel.

    Args:
        grid: the grid.
        across: ``(n, n)`` discrete second derivative in y whose off-diagonal entries are positive; with n = ny - 1 it
            acts on the inner faces, and the fields made from modes vanish on the upper wall.

    Reference: Lynch, Rice and Thomas, Numer. Math. 6, 185 (1964), doi:10.1007/BF01386067.
    """
    nx, ny = grid.cells
    along = (2 / grid.dx * np.sin(np.pi * np.arange(nx // 2 + 1) / nx)) ** 2
    # A diagonal scaling turns such a tridiagonal matrix into a symmetric one, whose eigenvectors are orthogonal.
    scale = np.sqrt(np.cumprod(np.concatenate([[1.0], np.diag(across, 1) / np.diag(across, -1)])))
    symmetric = scale[:, None] * across / scale
    eigenvalues, vectors = np.linalg.eigh(-(symmetric + symmetric.T) / 2)
    wall = (0, ny - len(across))
    return Modes(
        eigenvalues=along[:, None] + np.pad(eigenvalues, wall, mode="edge"),
        analysis=np.pad(scale[:, None] * vectors, (wall, wall)),
        synthesis=np.pad(vectors.T / scale, (wall, wall)),
        points=nx,
    )


def to_modes(f: jax.Array, modes: Modes) -> jax.Array:
    """Return the complex amplitudes ``(nx // 2 + 1, ny)`` of a field ``(nx, ny)``."""
    return jnp.fft.rfft(matmul(f, like(f, modes.analysis)), axis=0)


def from_modes(amplitudes: jax.Array, modes: Modes) -> jax.Array:
    """Return the field ``(nx, ny)`` of the given amplitudes ``(nx // 2 + 1, ny)``."""
    across = jnp.fft.irfft(amplitudes, n=modes.points, axis=0)
    return matmul(across, like(across, modes.synthesis))


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the matrix product in full precision; accelerators use a shorter float32 format unless told so."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
