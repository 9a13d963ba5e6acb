"""Mean shear stress of a flow described as data on its walls, and on the walls among the parts of a side."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params
from simkit.flow.arrays import end, like
from simkit.flow.composed.parts_of_sides import parts_of
from simkit.flow.composed.places import AXES
from simkit.flow.composed.sides import ENDS
from simkit.flow.operators.differences import joined
from simkit.flow.operators.diffusion import shear
from simkit.flow.stepping.stepper import FlowState

if TYPE_CHECKING:
    from simkit.flow.composed.flow import ComposedFlow


def walls_of(flow: "ComposedFlow") -> Iterator[tuple[int, int, str]]:
    """Yield (axis, side, name) of the sides that are walls, or of which a part is one."""
    domain = flow.places.domain
    for axis in domain.bounded():
        for side, which in enumerate(ENDS):
            if domain.side(axis, side).drawn_as == "wall" or "wall" in _kinds(flow, axis, side):
                yield axis, side, f"{AXES[axis]}_{which}"


def shear_on_walls(flow: "ComposedFlow", state: FlowState, params: Params) -> Arrays:
    """Return the mean shear stress over density of the flow on the walls of each side, along each direction of it.

        sum of nu du/dn A / sum of A,    A the area of walls around each point of the velocity component u

    On a side of several parts A is the area of the faces that are walls, half of it where only one of the two faces
    beside a point is; the mean is zero while there are none. Empty for a viscosity that varies.

    Args:
        flow: the flow.
        state: of the flow.
        params: parameters.
    """
    if flow.equations.varies:
        return {}
    domain, found = flow.places.domain, {}
    given = flow.equations.on_sides(params, state.time[0])
    viscosity = flow.viscosity.number(params)
    for axis, side, name in walls_of(flow):
        share = _share_of_walls(flow, axis, side, params, state.time[0])
        for i, f in enumerate(state.velocity):
            if i == axis:
                continue
            stress = (-1 if side else 1) * viscosity * end(shear(f, i, axis, given, domain), axis, side)
            area = _area_of_walls(share, axis, i, flow)
            total = jnp.sum(area)
            found[f"{name}.shear_{AXES[i]}"] = jnp.sum(stress * area) / jnp.where(total > 0, total, 1)
    return found


def _kinds(flow: "ComposedFlow", axis: int, side: int) -> list[str]:
    """Return the kinds of the parts of a side; empty for a side that is one."""
    if (axis, side) not in flow.conditions:
        return []
    settings, which = flow.settings["axes"][AXES[axis]], ENDS[side]
    return [kind for kind, *_ in parts_of(settings[which], settings.path(which))]


def _share_of_walls(flow: "ComposedFlow", axis: int, side: int, params: Params, time: jax.Array) -> jax.Array:
    """Return one layer at the centers of the faces of a side, 1 where it is a wall and 0 elsewhere."""
    rest, *parts = _kinds(flow, axis, side) or ["wall"]
    share = jnp.full(
        [1 if k == axis else n for k, n in enumerate(flow.places.domain.grid.cells)], float(rest == "wall")
    )
    given = flow.places.on_side(axis, side, None, params)
    for kind, condition in zip(parts, flow.conditions.get((axis, side), ()), strict=True):
        holds = condition.on(flow.places.axes, params, **given, time=time) > 0.5
        share = jnp.where(holds, like(share, kind == "wall"), share)
    return share


def _area_of_walls(share: jax.Array, axis: int, component: int, flow: "ComposedFlow") -> jax.Array:
    """Return the area of walls around the points of a velocity component on a side."""
    grid = flow.places.domain.grid
    for i, a in enumerate(grid.axes):
        share = share if i == axis else share * like(share, grid.along(a.widths, i))
    if grid.axes[component].periodic:
        return (share + jnp.roll(share, -1, component)) / 2
    none = jnp.zeros_like(end(share, component, 0))
    return (joined([none, share], component) + joined([share, none], component)) / 2
