"""The implicit viscous term, solved directly."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.flow.grid import ChannelGrid
from simkit.flow.modes import from_modes, laplacian_modes, to_modes
from simkit.flow.operators import Velocity, like


def diffusion_solver(grid: ChannelGrid) -> Callable[[Velocity, jax.Array], Velocity]:
    """Return the direct solver of the implicit viscous term, ``solve(source, coefficient) -> change``.

        change - coefficient laplacian(change) = source

    holds for exactly the discrete Laplacian of `operators` between walls at rest. ``coefficient`` (viscosity times
    time, unit h^2, not negative) is a traced value: the modes do not depend on it.

    Args:
        grid: the grid.
    """
    modes_u = laplacian_modes(grid, _second_difference_u(grid))
    modes_v = laplacian_modes(grid, _second_difference_v(grid))

    def solve(source: Velocity, coefficient: jax.Array) -> Velocity:
        def solve_one(f, modes):
            return from_modes(to_modes(f, modes) * (1 / (1 + coefficient * like(f, modes.eigenvalues))), modes)

        return solve_one(source[0], modes_u), solve_one(source[1], modes_v)

    return solve


def _second_difference_u(grid: ChannelGrid) -> np.ndarray:
    """Return the ``(ny, ny)`` second derivative across the channel of u, which lives at the heights of the centers."""
    (lower_near, lower_far), (upper_near, upper_far) = grid.wall_weights
    slope = np.pad(np.diff(np.eye(grid.cells[1]), axis=0) / grid.distances[:, None], ((1, 1), (0, 0)))
    slope[0, :2] = lower_near, -lower_far
    slope[-1, -2:] = upper_far, -upper_near
    return np.diff(slope, axis=0) / grid.heights[:, None]


def _second_difference_v(grid: ChannelGrid) -> np.ndarray:
    """Return the ``(ny - 1, ny - 1)`` second derivative across the channel of v on the inner faces."""
    slope = np.diff(np.pad(np.eye(grid.cells[1] - 1), ((1, 1), (0, 0))), axis=0) / grid.heights[:, None]
    return np.diff(slope, axis=0) / grid.distances[:, None]
