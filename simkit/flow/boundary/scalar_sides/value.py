"""Sides on which a scalar is given."""

import dataclasses
from typing import Any

import jax

from simkit.flow.boundary.scalar_sides.side import ScalarSide
from simkit.flow.boundary.side_data import Place


@dataclasses.dataclass(frozen=True)
class GivenValue(ScalarSide):
    """A side that has the given value, which a flow through it carries."""

    kind = "value"
    takes = True
    is_given = True

    def share(self, place: Place, values: Any) -> float:
        """Return 1."""
        return 1.0

    def carried(self, scalar: jax.Array, given: jax.Array, place: Place) -> jax.Array:
        """Return the given value."""
        return given
