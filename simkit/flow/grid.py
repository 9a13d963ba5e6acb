"""The staggered grid of a plane channel: periodic in x, walls at y = -1 and y = +1."""

import dataclasses
import functools
import math

import numpy as np

from simkit.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class ChannelGrid:
    """A marker-and-cell grid: pressure at cell centers, each velocity component on the faces it crosses.

    All fields have shape ``(nx, ny)`` and are indexed ``[x, y]``::

        p[i, j]  at the center of cell (i, j)
        u[i, j]  on its right face; the right face of the last cell is the left face of the first
        v[i, j]  on its upper face; v[:, -1] lies on the upper wall and stays zero

    Lengths are in units of the half-width h of the channel.

    Attributes:
        cells: number of cells ``(nx, ny)``.
        length: period in x.
        faces: ``(ny + 1,)`` increasing, y of the horizontal faces, walls included.

    Reference: Harlow and Welch, Phys. Fluids 8, 2182 (1965), doi:10.1063/1.1761178.
    """

    cells: tuple[int, int]
    length: float
    faces: np.ndarray

    @property
    def dx(self) -> float:
        """Width of every cell."""
        return self.length / self.cells[0]

    @functools.cached_property
    def heights(self) -> np.ndarray:
        """``(ny,)`` heights of the cells."""
        return np.diff(self.faces)

    @functools.cached_property
    def distances(self) -> np.ndarray:
        """``(ny - 1,)`` distances between the centers of vertical neighbors."""
        return np.diff(self.y)

    @functools.cached_property
    def x(self) -> np.ndarray:
        """``(nx,)`` x of the cell centers."""
        return (np.arange(self.cells[0]) + 0.5) * self.dx

    @functools.cached_property
    def y(self) -> np.ndarray:
        """``(ny,)`` y of the cell centers."""
        return (self.faces[1:] + self.faces[:-1]) / 2

    @functools.cached_property
    def wall_weights(self) -> np.ndarray:
        """``(2, 2)`` weights ``[wall, point]`` of the one-sided derivative at the lower and the upper wall.

        With a the first and b the second center from the wall, the parabola through the wall and both has the slope
        ``weights[0] (u_a - u_wall) - weights[1] (u_b - u_wall)`` into the fluid.
        """
        weights = []
        for near, far in ((self.y[0] + 1, self.y[1] + 1), (1 - self.y[-1], 1 - self.y[-2])):
            weights.append((far / (near * (far - near)), near / (far * (far - near))))
        return np.array(weights)


def uniform_grid(cells: tuple[int, int], length: float) -> ChannelGrid:
    """Return the grid of equal cells.

    Args:
        cells: number of cells ``(nx, ny)``, each at least 4.
        length: period in x, unit h, positive.

    Raises:
        UserError: if an argument is not of that kind.
    """
    if (
        not isinstance(cells, list | tuple)
        or len(cells) != 2
        or any(isinstance(n, bool) or not isinstance(n, int) or n < 4 for n in cells)
    ):
        raise UserError(f"cells = {cells!r} is not two integers of at least 4; choose for example cells = [64, 48]")
    if isinstance(length, bool) or not isinstance(length, int | float) or not 0 < length < math.inf:
        raise UserError(f"length = {length!r} is not a positive number; choose for example length = 6.0")
    return ChannelGrid((cells[0], cells[1]), float(length), np.linspace(-1.0, 1.0, cells[1] + 1))
