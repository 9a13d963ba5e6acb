"""Boundary data of sides: the velocity or scalar given on each, and values that a side holds itself."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax

from simkit.core.simulation import Params
from simkit.errors import UserError


class Given(NamedTuple):
    """Boundary data of a side that holds values of its own, see `simkit.flow.boundary.sides.side.Side.values`.

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


def with_values(given: tuple, sides: tuple, params: Params, time: jax.Array) -> tuple:
    """Return the boundary data of all sides, with the own values of those that hold some.

    Args:
        given: boundary data, a pair for each axis, or None.
        sides: for each axis a pair of sides, or None.
        params: parameters.
        time: the time.
    """
    if not any(side.has_values for pair in sides for side in pair or ()):
        return given
    return tuple(
        ends
        if pair is None
        else tuple(
            Given(end, side.values(params, time)) if side.has_values else end
            for end, side in zip((0.0, 0.0) if ends is None else ends, pair, strict=True)
        )
        for ends, pair in zip(given, sides, strict=True)
    )


def on_side(given: BoundaryVelocity | SideValues, axis: int, side: int) -> Any:
    """Return the velocity, or for a scalar the number, given on one side of a bounded axis."""
    pair = given[axis]
    assert pair is not None, "a periodic axis has no sides"
    entry = pair[side]
    return entry.given if isinstance(entry, Given) else entry


def values_on(given: BoundaryVelocity | SideValues, axis: int, side: int, what: OwnValues) -> Any:
    """Return the own values of one side of a bounded axis; None if it holds none.

    Args:
        given: boundary data of the sides.
        axis: index of a bounded axis.
        side: 0 for the lower, 1 for the upper.
        what: the side.

    Raises:
        UserError: if the side has values that are missing.
    """
    if not what.has_values:
        return None
    entry = (given[axis] or ((), ()))[side]
    if not isinstance(entry, Given):
        raise UserError(
            f"side '{what.kind}' of axis {'xyz'[axis]} has values of its own, which are missing here; "
            "give what Equations.on_sides(params, time) returns"
        )
    return entry.values
