"""Sides through which the flow leaves."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.flow.boundary.side_data import Place
from simkit.flow.boundary.sides.side import Side
from simkit.flow.grid import Velocity
from simkit.flow.operators.differences import difference_at_centers


@dataclasses.dataclass(frozen=True)
class Outflow(Side):
    """A side through which the flow leaves: the mean outflow velocity advects the velocity field out of the domain.

    Reference: Orlanski, J. Comput. Phys. 21, 251 (1976), doi:10.1016/0021-9991(76)90023-1.
    """

    kind = "outflow"
    drawn_as = "outflow"
    leaves = True

    def acceleration(self, velocity: Velocity, place: Place) -> jax.Array:
        """Return ``-c df/dn`` with the mean outward velocity c, not negative."""
        slope = place.nearest(difference_at_centers(velocity[place.axis], place.axis, place.grid)) * place.outward
        return -jnp.maximum(place.flux(velocity) / place.area, 0) * slope
