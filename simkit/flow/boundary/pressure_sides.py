"""Pressure given on the open sides of a domain, and how it accelerates the velocity through them."""

from collections.abc import Callable

import jax
import numpy as np
from jax.core import Tracer

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.arrays import Velocity, end, like, with_end
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.side_velocity import entries_of

# For each axis the pressure on its lower and upper side, numbers or arrays of one layer; None where it is periodic.
type PressureOnSides = tuple[tuple[jax.Array | float, jax.Array | float] | None, ...]
type SidePressure = Callable[[Params, jax.Array], PressureOnSides]


def pressure_on_sides(given: SidePressure | None, domain: Domain, params: Params, time: jax.Array) -> PressureOnSides:
    """Return the pressure on the sides at a time, checked; zero by default.

    Args:
        given: ``(params, time) -> pressure``; None for zero on every open side.
        domain: the domain.
        params: parameters.
        time: the time.

    Raises:
        UserError: if an entry is missing, or given for a side that does not use it; names the side.
    """
    if given is None:
        return tuple(None if pair is None else (0.0, 0.0) for pair in domain.sides)
    found = given(params, time)
    dimension = domain.grid.dimension
    if not isinstance(found, tuple | list) or len(found) != dimension:
        raise UserError(
            f"side_pressure gives {entries_of(found)}; give one pair of sides for each of the {dimension} axes"
        )
    for axis, pair in enumerate(found):
        if domain.sides[axis] is None:
            if pair is not None:
                raise UserError(f"side_pressure[{axis}] is given, but axis {'xyz'[axis]} is periodic; give None")
            continue
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UserError(
                f"side_pressure[{axis}] gives {entries_of(pair)}; axis {'xyz'[axis]} has a lower and an upper side"
            )
        for side, value in enumerate(pair):
            if not domain.side(axis, side).gives_pressure and (isinstance(value, Tracer) or np.any(np.asarray(value))):
                raise UserError(
                    f"side_pressure is given on {domain.place(axis, side).name}, which is of kind "
                    f"'{domain.side(axis, side).kind}'; give the number 0, or make the side a 'pressure' side"
                )
    return found


def pushed(acceleration: Velocity, pressure: PressureOnSides, domain: Domain) -> Velocity:
    """Return an acceleration on all faces, with the part due to the pressure on the open sides added.

    The distance between a side and the nearest centers is half a cell, so that the pressure P on the side adds
    ``2 P/width`` to the acceleration into the domain. The part due to the pressure at the centers is subtracted by
    `simkit.flow.operators.differences.gradient`.

    Args:
        acceleration: of each component, on all faces.
        pressure: on the sides.
        domain: the domain.
    """
    return tuple(pushed_along(i, f, pressure, domain) for i, f in enumerate(acceleration))


def pushed_along(axis: int, f: jax.Array, pressure: PressureOnSides, domain: Domain) -> jax.Array:
    """Return the component of `pushed` along an axis."""
    for side in (0, 1):
        pair = pressure[axis]
        if pair is None or not domain.is_open(axis)[side]:
            continue
        place = domain.place(axis, side)
        layer = end(f, axis, side) - place.outward * 2 / place.width * like(f, pair[side])
        f = with_end(f, layer, axis, side)
    return f
