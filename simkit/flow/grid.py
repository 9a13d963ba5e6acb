"""Staggered grids: a product of axes, each periodic or bounded, and helpers for arrays on them."""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_number, check_shape
from simkit.core.parameter import POSITIVE
from simkit.core.settings import arguments, number, several, whole
from simkit.errors import UserError

type Velocity = tuple[jax.Array, ...]


def end(f: jax.Array, axis: int, side: int) -> jax.Array:
    """Return the first (side 0) or last (side 1) layer of an array along an axis."""
    size = f.shape[axis]
    return jax.lax.slice_in_dim(f, size - 1 if side else 0, size if side else 1, axis=axis)


def with_end(f: jax.Array, layer: jax.Array, axis: int, side: int) -> jax.Array:
    """Return an array whose first (side 0) or last (side 1) layer along an axis is replaced."""
    return jax.lax.dynamic_update_slice_in_dim(f, layer, f.shape[axis] - 1 if side else 0, axis=axis)


def like(f: jax.Array, values) -> jax.Array:
    """Return constants in the working precision of ``f``."""
    return jnp.asarray(values, dtype=f.dtype)


# Widths of cells whose squares, and those of their inverses, are floating-point numbers.
WIDTHS = (1e-100, 1e100)
# Direct solvers store a dense matrix per axis; at this number of cells it takes 2 GiB.
MAX_CELLS = 16_384


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
    """One direction of a grid, cut into cells.

    Attributes:
        faces: ``(n + 1,)`` increasing positions of the faces between the cells, both ends included.
        periodic: whether the last face is the first one again; the cells are then equal.

    Example:
        >>> axis = flow.Axis(faces=np.linspace(0.0, 1.0, 5), periodic=False)
        >>> axis.cells, axis.centers
        (4, array([0.125, 0.375, 0.625, 0.875]))
    """

    faces: np.ndarray
    periodic: bool = False

    def __post_init__(self) -> None:
        """Check the widths of the cells.

        Raises:
            UserError: if the square of a width, or of its inverse, is not a floating-point number.
        """
        widths = np.diff(self.faces)
        for width in (widths.min(), widths.max()):
            check_number("width of a cell", width, *WIDTHS)

    @property
    def cells(self) -> int:
        """Number of cells n."""
        return len(self.faces) - 1

    @property
    def length(self) -> float:
        """Distance between both ends."""
        return float(self.faces[-1] - self.faces[0])

    @functools.cached_property
    def widths(self) -> np.ndarray:
        """``(n,)`` widths of the cells."""
        if self.periodic:
            return np.full(self.cells, self.length / self.cells)
        return np.diff(self.faces)

    @functools.cached_property
    def centers(self) -> np.ndarray:
        """``(n,)`` centers of the cells."""
        return (self.faces[1:] + self.faces[:-1]) / 2

    @functools.cached_property
    def distances(self) -> np.ndarray:
        """Distances between neighboring centers: ``(n,)`` on a periodic axis, the last around it; else ``(n - 1,)``."""
        return self.widths if self.periodic else np.diff(self.centers)

    @functools.cached_property
    def points(self) -> np.ndarray:
        """Positions of the velocity along the axis: its ``(n,)`` right faces if periodic, all ``(n + 1,)`` if not."""
        return self.faces[1:] if self.periodic else self.faces

    @property
    def uniform(self) -> bool:
        """Whether all cells are equal up to rounding."""
        return bool(np.ptp(self.widths) <= 1e-12 * self.length)


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """A marker-and-cell grid in two or three dimensions: pressure at the cell centers, velocity on the faces.

    Component i of the velocity lives on the faces across axis i and at the centers of the other axes. On a periodic
    axis these are the right faces of the cells, so all its arrays have n entries along it; on a bounded axis all
    n + 1 faces, the two on the boundary included. Arrays are indexed ``[x, y]`` or ``[x, y, z]``.

    Attributes:
        axes: two or three axes.

    Example:
        >>> grid = flow.Grid((flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0)))
        >>> grid.cells, grid.shape(0), grid.shape(1)
        ((8, 6), (8, 6), (8, 7))

    Reference: Harlow and Welch, Phys. Fluids 8, 2182 (1965), doi:10.1063/1.1761178.
    """

    axes: tuple[Axis, ...]

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def cells(self) -> tuple[int, ...]:
        """Number of cells along each axis, the shape of the pressure."""
        return tuple(axis.cells for axis in self.axes)

    def shape(self, component: int) -> tuple[int, ...]:
        """Return the shape of one component of the velocity.

        Example:
            >>> grid = flow.Grid((flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0)))
            >>> grid.shape(0), grid.shape(1)
            ((8, 6), (8, 7))
        """
        return tuple(len(a.points) if i == component else a.cells for i, a in enumerate(self.axes))

    def along(self, values: np.ndarray, axis: int) -> np.ndarray:
        """Return constants of one axis shaped to multiply arrays of the grid."""
        return values.reshape([-1 if i == axis else 1 for i in range(self.dimension)])

    @property
    def volume(self) -> float:
        """Product of the lengths."""
        return math.prod(axis.length for axis in self.axes)


def coordinates_along(**axes: Axis) -> dict[str, np.ndarray]:
    """Return the cell centers along axes as coordinates of a simulation, and the widths of unequal cells.

    Args:
        **axes: by name.
    """
    unequal = {f"{name}_widths": axis.widths for name, axis in axes.items() if not axis.uniform}
    return {name: axis.centers for name, axis in axes.items()} | unequal


def points_along(**axes: Axis) -> dict[str, np.ndarray]:
    """Return where the velocity along axes lives, as coordinates ``NAME_face`` of a simulation.

    Between two sides each stands for half the cells beside it, by which means are weighed.

    Args:
        **axes: by name.
    """
    halves = {f"{name}_face_widths": np.convolve(a.widths, [0.5, 0.5]) for name, a in axes.items() if not a.periodic}
    return {f"{name}_face": axis.points for name, axis in axes.items()} | halves


CELLS = whole("number of cells", low=4, high=MAX_CELLS)
LENGTH = number("length of an axis", bounds=POSITIVE)


@arguments(cells=CELLS, length=LENGTH, origin=number("position of the first face"))
def periodic_axis(cells: int, length: float, origin: float = 0.0) -> Axis:
    """Return a periodic axis of equal cells.

    Args:
        cells: number of cells, at least 4.
        length: period, positive.
        origin: position of its first face.

    Raises:
        UserError: if an argument is out of range.

    Example:
        >>> x = flow.periodic_axis(4, 2.0)
        >>> x.faces, x.periodic
        (array([0. , 0.5, 1. , 1.5, 2. ]), True)
    """
    return Axis(np.linspace(origin, origin + length, cells + 1), periodic=True)


@arguments(
    cells=CELLS,
    length=LENGTH,
    origin=number("position of the lower boundary"),
    stretching=number("0 for equal cells, 2 for those at the ends 4 times as fine", bounds=(0, 6)),
)
def bounded_axis(cells: int, length: float, origin: float = 0.0, stretching: float = 0.0) -> Axis:
    """Return an axis between two boundaries, its cells equal or finer toward both ends.

        face(s) = tanh(stretching s) / tanh(stretching),   s from -1 to 1 in equal steps, scaled to the length

    Args:
        cells: number of cells, at least 4.
        length: distance between the boundaries, positive.
        origin: position of the lower boundary.
        stretching: 0 for equal cells; 2 makes those at the ends about 4 times as fine as the mean; at most 6.

    Raises:
        UserError: if an argument is out of range.

    Example:
        >>> flow.bounded_axis(4, 2.0, origin=-1.0).faces
        array([-1. , -0.5,  0. ,  0.5,  1. ])
        >>> flow.bounded_axis(4, 2.0, origin=-1.0, stretching=2.0).faces.round(3)
        array([-1.  , -0.79,  0.  ,  0.79,  1.  ])
    """
    faces = np.linspace(origin, origin + length, cells + 1)
    if stretching > 0:
        s = np.tanh(stretching * np.linspace(-1, 1, cells + 1)) / np.tanh(stretching)
        # Averaged with its mirror image, a grid around 0 is symmetric to the last bit.
        faces = origin + length / 2 + length / 2 * (s - s[::-1]) / 2
    return Axis(faces)


@arguments(
    cell=number("width of the cells in that part", bounds=POSITIVE),
    around=several(number("one end"), "ends of that part", (2,)),
    length=LENGTH,
    growth=number("growth of the cell width per distance", bounds=(0, 1)),
    origin=number("position of the lower boundary"),
)
def refined_axis(cell: float, around: tuple[float, float], length: float, growth: float, origin: float = 0.0) -> Axis:
    """Return an axis between two boundaries with equal cells in one part of it, and longer ones away from there.

    A cell at the distance d from that part is ``cell + growth d`` long, adjusted slightly to make the number of cells
    an integer.

    Args:
        cell: width of the cells in that part, positive.
        around: ends of that part, inside the axis; a multiple of ``cell`` apart.
        length: distance between the boundaries, positive.
        growth: growth of the cell width per distance, from 0 (equal cells) to 1.
        origin: position of the lower boundary.

    Raises:
        UserError: if an argument is out of range.

    Example:
        >>> x = flow.refined_axis(0.1, around=(1.0, 1.4), length=4.0, growth=0.5)
        >>> print(f"{len(x.widths)} cells, from {x.widths.min():.2f} to {x.widths.max():.2f}")
        13 cells, from 0.10 to 1.15
    """
    lower, upper = around
    for end, low in ((lower, origin), (upper, lower)):
        check_number("an end of around", end, low, origin + length)
    count = round((upper - lower) / cell)
    if count < 1 or abs(upper - lower - count * cell) > 1e-9 * length:
        raise UserError(f"cell = {cell!r} does not divide around = ({lower:g}, {upper:g}); choose {upper - lower:g}/n")
    _check_count(count)
    below = _away(cell, lower - origin, growth)
    above = _away(cell, origin + length - upper, growth)
    equal = np.linspace(lower, upper, count + 1)
    return axis_of_faces(np.concatenate([lower - below[:0:-1], equal, upper + above[1:]]))


def _away(cell: float, distance: float, growth: float) -> np.ndarray:
    """Return the distances of the faces of growing cells, from 0 to the given distance."""
    if distance <= 0:
        return np.zeros(1)
    # The solution of d' = cell + growth d, as a function of the number of cells passed.
    cells = math.log1p(growth * distance / cell) / growth if growth else distance / cell
    _check_count(cells)
    s = np.linspace(0, 1, max(round(cells), 1) + 1)
    return distance * (np.expm1(growth * cells * s) / np.expm1(growth * cells) if growth else s)


def axis_of_faces(faces: Sequence[float] | np.ndarray) -> Axis:
    """Return the axis between two boundaries with the given faces.

    Args:
        faces: at least 5 increasing positions.

    Raises:
        UserError: if they are not; names the first that does not increase.

    Example:
        >>> y = flow.axis_of_faces([0.0, 0.1, 0.3, 0.6, 1.0])
        >>> y.widths.round(2)
        array([0.1, 0.2, 0.3, 0.4])
    """
    try:
        positions = np.asarray(faces, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"faces = {faces!r} is not a list of numbers; give increasing positions") from None
    check_shape("faces", positions, "a list of at least 5 increasing positions", (max(positions.size, 5),))
    wrong = np.flatnonzero(~(np.diff(positions) > 0) | ~np.isfinite(positions[1:]) | ~np.isfinite(positions[:-1]))
    if len(wrong):
        i = int(wrong[0])
        raise UserError(
            f"faces do not increase: faces[{i}] = {positions[i]:g} is followed by {positions[i + 1]:g}; "
            "give increasing, finite positions"
        )
    return Axis(positions)


def _check_count(cells: float) -> None:
    check_number("cells along one axis", cells, high=MAX_CELLS)
