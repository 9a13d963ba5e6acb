"""Sides through which a given amount of a scalar enters."""

import dataclasses
from typing import Any

import jax

from simkit.flow.boundary.scalar_sides.side import ScalarSide
from simkit.flow.boundary.side_data import Place


@dataclasses.dataclass(frozen=True)
class GivenFlux(ScalarSide):
    """A side through which the given amount per area and time diffuses into the fluid."""

    kind = "flux"
    takes = True

    def entering(
        self, scalar: jax.Array, given: jax.Array, diffusivity: jax.Array, place: Place, values: Any
    ) -> jax.Array:
        """Return the given amount."""
        return given
