"""Speeds that are given, of sides and obstacles, as cells crossed per time."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.flow.arrays import like
from simkit.flow.boundary.given import on_side
from simkit.flow.equations import Equations
from simkit.flow.grid import Grid


def rate_of_given_speeds(equations: Equations, params: Params, time: jax.Array) -> jax.Array | None:
    """Return the largest number of cells per time that a velocity given at a time crosses; None where nothing moves.

    Such a velocity is that on a side, ``|u|/dx + |v|/dy + |w|/dz`` with the narrowest cells beside each face, or that
    of an obstacle.

    Args:
        equations: of the flow.
        params: parameters.
        time: the time, scalar.
    """
    rates = [] if equations.boundary is None else _rates_on_sides(equations, params, time)
    if equations.obstacle is not None:
        rates += [equations.obstacle.crossing_rate(params, time)]
    found = [rate for rate in rates if rate is not None]
    return functools.reduce(jnp.maximum, found) if found else None


def _rates_on_sides(equations: Equations, params: Params, time: jax.Array) -> list[jax.Array | None]:
    domain = equations.domain
    given = equations.on_sides(params, time)
    rates: list[jax.Array | None] = []
    for axis in domain.bounded():
        for side in (0, 1):
            terms = [
                jnp.max(jnp.abs(value) * like(time, _per_cell(domain.grid, component, axis, side)))
                for component, value in enumerate(on_side(given, axis, side))
                if not (isinstance(value, int | float) and value == 0)
            ]
            rates += [functools.reduce(jnp.add, terms)] if terms else []
    return rates


def _per_cell(grid: Grid, component: int, axis: int, side: int) -> np.ndarray:
    """Return one over the width of the cells that a component crosses on a side, the narrower ones beside each face."""
    widths = grid.axes[component].widths
    if component == axis:
        return 1 / widths[-1 if side else 0]
    if grid.axes[component].periodic:
        return 1 / widths[0]
    beside = np.minimum(np.append(widths[:1], widths), np.append(widths, widths[-1:]))
    return grid.along(1 / beside, component)
