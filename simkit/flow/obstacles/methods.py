"""Bodies in a flow by the name of the method that imposes their boundary conditions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from simkit.core.settings import word
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary, unsupported
from simkit.flow.viscosity import Uniform

if TYPE_CHECKING:
    from simkit.flow.equations import Equations

METHODS = IMMERSED, FORCED = ("immersed_boundary", "direct_forcing")


def method_for(equations: "Equations", bodies: Mapping[str, Body]) -> str:
    """Return the method for bodies of which none is named: an immersed boundary where it serves.

    Args:
        equations: of the flow, without the bodies.
        bodies: by name.
    """
    return FORCED if unsupported(equations, bodies.values()) else IMMERSED


def bodies_in(
    domain: Domain, method: str, bodies: Mapping[str, Body], viscosity: Uniform
) -> ImmersedBoundary | DirectForcing:
    """Return rigid bodies in a flow, the obstacle of `simkit.flow.equations.Equations`.

    Args:
        domain: the domain.
        method: "immersed_boundary", for plane bodies with outlines star-shaped about the pivot, whose forces are smooth
            functions of position; or "direct_forcing", for any body in two or three dimensions.
        bodies: by name, in the order of their loads.
        viscosity: viscosity of the equations: a number, the name of a parameter or ``params -> number``.

    Raises:
        UserError: if the method is unknown, or a body lacks what it needs.

    Example:
        >>> axes = (flow.bounded_axis(16, 4.0), flow.bounded_axis(16, 4.0))
        >>> tunnel = flow.domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
        >>> shape = lambda params: flow.obstacles.ball((2.0, 2.0), 0.5)
        >>> body = flow.obstacles.Body(shape, pivot=lambda params: (2.0, 2.0))
        >>> bodies = flow.obstacles.bodies_in(tunnel, "direct_forcing", {"cylinder": body}, viscosity="nu")
        >>> type(bodies).__name__, list(bodies.bodies)
        ('DirectForcing', ['cylinder'])
    """
    if word("of the surfaces", tuple(METHODS)).check(method, "method") == IMMERSED:
        return ImmersedBoundary(domain, bodies, viscosity)
    return DirectForcing(domain, bodies)
