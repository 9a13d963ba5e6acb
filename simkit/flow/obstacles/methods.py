"""The choice of a method that holds a body in a flow."""

from collections.abc import Callable

import jax

from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary
from simkit.flow.obstacles.shapes import Point, Shape
from simkit.flow.viscosity import Uniform

METHODS = ("immersed_boundary", "direct_forcing")


def body_in(
    domain: Domain,
    method: str,
    *,
    shape: Callable[[Params], Shape],
    pivot: Callable[[Params], Point],
    viscosity: Uniform,
    points: int,
    spin: Callable[[Params], jax.Array] | None = None,
) -> ImmersedBoundary | DirectForcing:
    """Return a rigid body that is at rest in a flow, or turns.

    Args:
        domain: the domain.
        method: "immersed_boundary", for plane bodies whose outline every ray from the pivot meets once: forces are
            smooth in the place of the body; or "direct_forcing", for any body in two or three dimensions.
        shape: ``params -> shape``, see `simkit.flow.obstacles.shapes`.
        pivot: ``params -> point``, about which the torque is taken, and the body turns.
        viscosity: that of the equations, a number, the name of a parameter or ``params -> number``.
        points: number of points on the outline, see `simkit.flow.obstacles.immersed_boundary.points_around`.
        spin: ``params -> number``, angular velocity, counterclockwise in the x-y plane; or None for a body at rest.

    Raises:
        UserError: if the method is unknown.
    """
    if method == "immersed_boundary":
        return ImmersedBoundary(domain, shape, pivot, viscosity, points, spin)
    if method == "direct_forcing":
        return DirectForcing(domain, shape, pivot, spin)
    raise UserError(f"method '{method}' is unknown{nearest(method, list(METHODS))}")
