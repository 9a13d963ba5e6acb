"""The pressure equation, solved directly."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.flow.grid import ChannelGrid
from simkit.flow.modes import from_modes, laplacian_modes, to_modes
from simkit.flow.operators import like


def pressure_solver(grid: ChannelGrid) -> Callable[[jax.Array], jax.Array]:
    """Return the direct solver of the pressure equation, ``solve(source) -> p`` with arrays ``(nx, ny)``.

        div(grad(p)) = source

    holds for exactly the discrete divergence and gradient of `operators`, so that ``velocity - grad(p)`` with
    ``source = div(velocity)`` has no divergence beyond round-off. Of the constants that may be added to ``p`` it takes
    the one with zero mean, and it ignores the mean of ``source``, which no pressure between impermeable walls produces.

    Args:
        grid: the grid.
    """
    modes = laplacian_modes(grid, _second_difference(grid))
    eigenvalues = modes.eigenvalues.copy()
    eigenvalues[0, 0] = np.inf
    inverse = -1 / eigenvalues

    def solve(source: jax.Array) -> jax.Array:
        return from_modes(like(source, inverse) * to_modes(source, modes), modes)

    return solve


def _second_difference(grid: ChannelGrid) -> np.ndarray:
    """Return the ``(ny, ny)`` divergence of the gradient across the channel, with no gradient on the walls."""
    slope = np.diff(np.eye(grid.cells[1]), axis=0) / grid.distances[:, None]
    return np.diff(np.pad(slope, ((1, 1), (0, 0))), axis=0) / grid.heights[:, None]
