"""One-sided slopes of the velocity at the sides of a domain."""

import jax

from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.given import BoundaryVelocity, on_side, values_on

type Share = jax.Array | float | None


def side_slope(
    f: jax.Array, component: int, axis: int, side: int, boundary: BoundaryVelocity, domain: Domain
) -> jax.Array | None:
    """Return the derivative of a component of the velocity along an axis on one of its sides, as one layer.

    None if there is no shear.

    Args:
        f: the component, on its faces.
        component: index of the velocity component.
        axis: another axis, bounded.
        side: 0 for the lower, 1 for the upper.
        boundary: velocity on the sides.
        domain: the domain.
    """
    what = domain.side(axis, side)
    given, values = on_side(boundary, axis, side)[component], values_on(boundary, axis, side, what)
    return what.slope(f, component, given, domain.place(axis, side), values)


def side_shares(component: int, axis: int, boundary: BoundaryVelocity, domain: Domain) -> tuple[Share, Share]:
    """Return the shares of the slope at a wall on the lower and upper side of a bounded axis, see `Side.share`.

    Args:
        component: of the velocity, along the sides.
        axis: across them.
        boundary: velocity on the sides.
        domain: the domain.
    """

    def share(side: int) -> Share:
        what = domain.side(axis, side)
        return what.share(component, domain.place(axis, side), values_on(boundary, axis, side, what))

    return share(0), share(1)
