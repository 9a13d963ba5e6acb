"""A kind of side of a scalar: what its transport asks of it."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from simkit.flow.boundary.given import OwnValues, known_share
from simkit.flow.boundary.place import Place


class ScalarSide(OwnValues):
    """A kind of side of a scalar. Subclasses say what differs from an insulated side, which this one is.

    A kind of your own is a frozen dataclass that derives from this class; its objects stand in
    `simkit.flow.TransportedScalar` where names of kinds do. What it holds besides it returns from `values`.

    Attributes:
        kind: name in messages.
        takes: whether it uses the number that it is given.
        is_given: whether a flow through it carries the given number: sides through which the flow enters need that.
    """

    kind: ClassVar[str] = "insulated"
    takes: ClassVar[bool] = False
    is_given: ClassVar[bool] = False

    def share(self, place: Place, values: Any) -> jax.Array | float | None:
        """Return the slope on the side over that which the given number would cause, see `Side.share` of the flow."""
        return 0.0

    def entering(
        self, scalar: jax.Array, given: jax.Array, diffusivity: jax.Array, place: Place, values: Any
    ) -> jax.Array:
        """Return what diffuses into the fluid through the side per area and time, as one layer.

        By default that of `share` times the slope to the given number.

        Args:
            scalar: at the cell centers.
            given: what the side is given, as one layer.
            diffusivity: of the scalar.
            place: where the side is; ``place.slope(f, value)`` is the derivative where a value is given.
            values: those of `values`.
        """
        share = known_share(self.kind, self.share(place, values), "entering")
        if isinstance(share, float) and share == 0:
            return jnp.zeros_like(given)
        slope = place.slope(scalar, given)
        flux = diffusivity * (slope if place.side else -slope)
        return flux if isinstance(share, float) and share == 1 else share * flux

    def carried(self, scalar: jax.Array, given: jax.Array, place: Place) -> jax.Array:
        """Return what a flow through the side carries, as one layer: that of the nearest cells."""
        return place.nearest(scalar)
