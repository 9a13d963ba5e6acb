"""Scalar at the surface of a body in a flow: a given value, or a given flux."""

import dataclasses
from collections.abc import Callable

import jax

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.arrays import like
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.neighbors import Neighbors
from simkit.flow.obstacles.parabola import shell_weight, slope_weight, with_slope, with_value
from simkit.flow.obstacles.shapes import Shape


@dataclasses.dataclass(frozen=True, eq=False)
class ScalarSurface:
    """Boundary condition of a scalar at the surface of a body: its value, or its flux into the fluid.

    As in direct forcing of the velocity, the scalar in a thin shell around the surface is replaced, with either method,
    by the parabola along the normal with the value or the slope ``-flux/diffusivity`` on the surface. The amount added,
    less the increase in the fluid inside the body, is reported with the loads as the amount given by the body.

    A value converges at order 1.6, a flux at first order: the field one spacing further out is read off the plane
    through its neighbors, which misses the curvature of a surface of radius R by up to h/4R of the slope (along
    diagonals; none along axes, where it is exact).

    Attributes:
        value: ``(params, time) -> number`` on the surface; or None.
        flux: ``(params, time) -> number``, per area and time, into the fluid; 0 for an insulated body; or None.

    Raises:
        UserError: if both are given, or none.
    """

    value: Callable[[Params, jax.Array], jax.Array | float] | None = None
    flux: Callable[[Params, jax.Array], jax.Array | float] | None = None

    def __post_init__(self) -> None:
        """Refuse two conditions, or none."""
        if (self.value is None) == (self.flux is None):
            raise UserError("a body gives a scalar its value or a flux; give one of value and flux")

    def force(
        self,
        scalar: jax.Array,
        before: jax.Array,
        shape: Shape,
        domain: Domain,
        diffusivity: jax.Array | float,
        params: Params,
        time: jax.Array,
    ) -> jax.Array:
        """Return the change of a scalar that imposes the body's condition.

        Args:
            scalar: at the cell centers.
            before: scalar at the start of the stage, to which the parabola is fitted.
            shape: shape of the body at its position.
            domain: the domain.
            diffusivity: of the scalar.
            params: parameters.
            time: time.
        """
        grid = domain.grid
        distance, normal = distance_and_normal(shape, [like(scalar, p) for p in positions(None, grid)])
        neighbors = Neighbors(None, grid, normal)
        s = distance / neighbors.spacing
        first = neighbors.outward(before)
        second = neighbors.outward(first)
        if self.value is not None:
            value = self.value(params, time)
            target = with_value(s, value, first - value, second - value)
            return shell_weight(s) * (target - scalar)
        assert self.flux is not None, "one of both is given"
        target = with_slope(s, -self.flux(params, time) / diffusivity * neighbors.spacing, first, second)
        return slope_weight(s) * (target - scalar)
