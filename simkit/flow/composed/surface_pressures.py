"""The pressure at points of the surface of an obstacle, of a flow that is described as data."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.composed.obstacles import ObstacleFormulas
from simkit.flow.obstacles.distance import distance_and_normal
from simkit.flow.obstacles.outline import check_outline, farthest_corner, on_rays
from simkit.flow.obstacles.surface import surface_pressure
from simkit.flow.stepping.stepper import FlowState

if TYPE_CHECKING:
    from simkit.flow.composed.flow import ComposedFlow


def surface_pressures(
    name: str, one: ObstacleFormulas, flow: "ComposedFlow", cell: float, state: FlowState, params: Params
) -> dict[str, jax.Array]:
    """Return the pressure where rays from the position of an obstacle leave it, by the names of the points.

    Args:
        name: of the obstacle.
        one: its formulas.
        flow: the flow.
        cell: width of the cells there, see `simkit.flow.obstacles.surface.surface_pressure`.
        state: of the flow.
        params: parameters.
    """
    if not one.pressures:
        return {}
    domain, bodies, time = flow.places.domain, flow.equations.obstacle, state.time[0]
    body = bodies.bodies[name]  # type: ignore[union-attr]
    now = body.now(params, time)
    shape = body.shape_at(params, now, domain)
    angles = jnp.stack([formula.number(params, time=time) for formula in one.pressures.values()])
    points = on_rays(shape, now.position, angles, farthest_corner(now.position, domain))
    normals = distance_and_normal(shape, points)[1]
    return {
        where: surface_pressure(
            state.pressure,
            tuple(x[k] for x in points),
            tuple(n[k] for n in normals),
            cell,
            domain.grid,
            bodies.reach,  # type: ignore[union-attr]
        )
        for k, where in enumerate(one.pressures)
    }


def check_surface(name: str, one: ObstacleFormulas, flow: "ComposedFlow", params: Params) -> None:
    """Refuse an obstacle of which a ray may leave twice, where the pressure on its surface is diagnosed.

    Args:
        name: of the obstacle.
        one: its formulas.
        flow: the flow.
        params: as the run begins.

    Raises:
        UserError: if a ray from the position meets the outline twice, or the position is outside.
    """
    if not one.pressures:
        return
    body = flow.equations.obstacle.bodies[name]  # type: ignore[union-attr]
    now = body.now(params, 0.0)
    shape = body.shape_at(params, now, flow.places.domain)
    try:
        check_outline(shape, now.position, farthest_corner(now.position, flow.places.domain))
    except UserError:
        raise one.settings.refuse(
            "pressure_at",
            "needs a position in the body from which every ray leaves it once; choose one, or remove it",
        ) from None
