"""Velocities given on the sides of a domain; components that a kind of side does not use are refused."""

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain, no_motion
from simkit.flow.boundary.given import Boundary, BoundaryVelocity, with_values


def velocity_on_sides(boundary: Boundary | None, domain: Domain, params: Params, time: jax.Array) -> BoundaryVelocity:
    """Return the checked velocity on the sides at a time, with the sides' own values; at rest by default.

    Args:
        boundary: ``(params, time) -> velocity on the sides``; ``None`` for sides at rest.
        domain: the domain.
        params: parameters.
        time: the time.

    Raises:
        UserError: if a side is given a component that its kind does not use.
    """
    given = no_motion(domain) if boundary is None else checked_boundary(boundary(params, time), domain)
    return with_values(given, domain.sides, params, time)


def checked_boundary(boundary: BoundaryVelocity, domain: Domain) -> BoundaryVelocity:
    """Return the velocity on the sides, after checking that each given number is used by its side.

    A wall uses the tangential velocity, an inflow the whole velocity; a free-slip side and an outflow use none, see
    `simkit.flow.boundary.sides.side.Side`. A component that a side does not use must be the Python number 0, not a
    traced array.

    Args:
        boundary: ``boundary[axis] = (lower, upper)``, for each side one number or array per component; None where the
            axis is periodic.
        domain: the domain.

    Raises:
        UserError: if an entry is missing, superfluous or unused; names the side.
    """
    dimension = domain.grid.dimension
    if not isinstance(boundary, tuple | list) or len(boundary) != dimension:
        raise UserError(
            f"boundary gives {entries_of(boundary)}; give one pair of sides for each of the {dimension} axes"
        )
    for axis, pair in enumerate(boundary):
        name = "xyz"[axis]
        if domain.sides[axis] is None:
            if pair is not None:
                raise UserError(f"boundary[{axis}] is given, but axis {name} is periodic and has no sides; give None")
            continue
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UserError(f"boundary[{axis}] gives {entries_of(pair)}; axis {name} has a lower and an upper side")
        for side, given in enumerate(pair):
            what = domain.side(axis, side)
            here = f"{domain.place(axis, side).name}, which is of kind '{what.kind}',"
            if not isinstance(given, tuple | list) or len(given) != dimension:
                raise UserError(f"boundary gives {entries_of(given)} for {here} and not {dimension} components")
            for component, value in enumerate(given):
                used = what.enters if component == axis else what.takes_along
                if not used and not _is_zero(value):
                    raise UserError(
                        f"boundary gives {here} a velocity along {'xyz'[component]}, which it does not use; give the "
                        f"number 0{', or make the side an inflow' if component == axis else ''}"
                    )
    return boundary


def entries_of(value: object) -> str:
    """Return how many entries a tuple or list has, or the value itself, for a message."""
    return f"{len(value)} entries" if isinstance(value, tuple | list) else repr(value)


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Tracer) and not np.any(np.asarray(value))
