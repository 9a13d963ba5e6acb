"""Data and geometry of a side: what is given on it, its position on the grid, one-sided slopes and fluxes."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.grid import Grid, end, like

# Names that formulas of data on sides take besides parameters.
ON_SIDE = ("x", "y", "z", "time")
# ``(params, time) -> number``, or an array of one layer on the side.
type OfTime = Callable[[Params, jax.Array], jax.Array | float]


def nothing(params: Params, time: jax.Array) -> float:
    """Return 0."""
    return 0.0


class Given(NamedTuple):
    """Boundary data of a side that holds values of its own, see `simkit.flow.boundary.sides.Side.values`.

    Attributes:
        given: the velocity on the side, one number or array per component; or the number given for a scalar's side.
        values: the side's own values at the parameters and the time.
    """

    given: Any
    values: Any


class OwnValues:
    """A kind of side that may hold values of its own: numbers, or functions of the parameters and the time.

    Attributes:
        kind: name in messages.
    """

    kind: ClassVar[str] = ""

    @property
    def has_values(self) -> bool:
        """Whether `values` returns any."""
        return type(self).values is not OwnValues.values

    def values(self, params: Params, time: jax.Array) -> Any:
        """Return the values that the side holds at a time: a pytree of arrays and numbers."""
        return None


type SideVelocity = tuple[jax.Array | float, ...]
type BoundaryVelocity = tuple[tuple[SideVelocity | Given, SideVelocity | Given] | None, ...]
type Boundary = Callable[[Params, jax.Array], BoundaryVelocity]
type SideValues = tuple[tuple[jax.Array | float | Given, jax.Array | float | Given] | None, ...]


def with_values(side_values: tuple, sides: tuple, params: Params, time: jax.Array) -> tuple:
    """Return the boundary data of all sides, with the own values of those that hold some.

    Args:
        side_values: boundary data, a pair for each axis, or None.
        sides: for each axis a pair of sides, or None.
        params: parameters.
        time: the time.
    """
    if not any(side.has_values for pair in sides for side in pair or ()):
        return side_values
    return tuple(
        ends
        if pair is None
        else tuple(
            Given(end, side.values(params, time)) if side.has_values else end
            for end, side in zip((0.0, 0.0) if ends is None else ends, pair, strict=True)
        )
        for ends, pair in zip(side_values, sides, strict=True)
    )


def on_side(side_values: BoundaryVelocity | SideValues, axis: int, side: int) -> Any:
    """Return the velocity, or for a scalar the number, given on one side of a bounded axis."""
    pair = side_values[axis]
    assert pair is not None, "a periodic axis has no sides"
    entry = pair[side]
    return entry.given if isinstance(entry, Given) else entry


def values_on(side_values: BoundaryVelocity | SideValues, axis: int, side: int, what: OwnValues) -> Any:
    """Return the own values of one side of a bounded axis; None if it holds none.

    Args:
        side_values: boundary data of the sides.
        axis: index of a bounded axis.
        side: 0 for the lower, 1 for the upper.
        what: the side.

    Raises:
        UserError: if the side has values that are missing.
    """
    if not what.has_values:
        return None
    entry = (side_values[axis] or ((), ()))[side]
    if not isinstance(entry, Given):
        raise UserError(
            f"side '{what.kind}' of axis {'xyz'[axis]} has values of its own, which are missing here; "
            "give what Equations.on_sides(params, time) returns"
        )
    return entry.values


def known_share(kind: str, share: jax.Array | float | None, method: str) -> jax.Array | float:
    """Return the share of a side, after checking that it is defined.

    Args:
        kind: of the side.
        share: the share of the side, or None.
        method: name of the method that a side without a share must define.

    Raises:
        UserError: if the share is None.
    """
    if share is None:
        raise UserError(f"side '{kind}' has the share None and no {method} of its own; define either in its class")
    return share


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """Position of a side: the lower or upper end of a bounded axis.

    Attributes:
        grid: the grid.
        axis: the axis across the side.
        side: 0 for its lower, 1 for its upper end.
        wall_slope: "parabola" or "symmetric", see `simkit.flow.boundary.domain.Domain`.

    Example:
        >>> grid = flow.Grid((flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0)))
        >>> lower = flow.Place(grid, axis=1, side=0, wall_slope="parabola")
        >>> shear = jnp.broadcast_to(3.0 * grid.axes[1].centers, (4, 8))
        >>> print(np.round(lower.slope(shear, jnp.array(0.0)).ravel(), 4))
        [3. 3. 3. 3.]
    """

    grid: Grid
    axis: int
    side: int
    wall_slope: str

    @property
    def name(self) -> str:
        """Name of the side in messages."""
        return f"the {('lower', 'upper')[self.side]} side of axis {'xyz'[self.axis]}"

    @property
    def outward(self) -> int:
        """The direction out of the domain along the axis, 1 or -1."""
        return 1 if self.side else -1

    @property
    def width(self) -> float:
        """Width of the nearest cells."""
        return float(self.grid.axes[self.axis].widths[-1 if self.side else 0])

    @property
    def area(self) -> float:
        """Area of the side; in two dimensions its length."""
        return math.prod(a.length for i, a in enumerate(self.grid.axes) if i != self.axis)

    @functools.cached_property
    def weights(self) -> tuple[float, float]:
        """Weights (near, far) of the one-sided derivative.

        A field f that is f_0 on the side, and f_a and f_b at the first and second center from it, has the slope
        ``near (f_a - f_0) - far (f_b - f_0)`` into the domain.
        """
        a = self.grid.axes[self.axis]
        near, far = a.faces[-1] - a.centers[:-3:-1] if self.side else a.centers[:2] - a.faces[0]
        if self.wall_slope == "symmetric":
            return float(1 / near), 0.0
        return float(far / (near * (far - near))), float(near / (far * (far - near)))

    def slope(self, f: jax.Array, value: jax.Array) -> jax.Array:
        """Return the derivative along the axis on the side, as one layer, of a field that has a value there.

        Args:
            f: the field, at the cell centers along the axis.
            value: value of the field on the side.
        """
        near, far = self.weights
        slope = near * (end(f, self.axis, self.side) - value)
        if far:
            index = f.shape[self.axis] - 2 if self.side else 1
            second = jax.lax.slice_in_dim(f, index, index + 1, axis=self.axis)
            slope = slope - far * (second - value)
        return -slope if self.side else slope

    def layer(self, f: jax.Array, value: jax.Array | float) -> jax.Array:
        """Return a value as one layer on the side, in the shape of a field."""
        return jnp.broadcast_to(like(f, value), tuple(1 if i == self.axis else n for i, n in enumerate(f.shape)))

    def nearest(self, f: jax.Array) -> jax.Array:
        """Return the layer of a field nearest to the side, or on it."""
        return end(f, self.axis, self.side)

    def flux(self, velocity: Sequence[jax.Array]) -> jax.Array:
        """Return the volume per time that leaves through the side."""
        face = self.nearest(velocity[self.axis])
        for other, a in enumerate(self.grid.axes):
            if other != self.axis:
                face = face * like(face, self.grid.along(a.widths, other))
        return jnp.sum(face) * self.outward
