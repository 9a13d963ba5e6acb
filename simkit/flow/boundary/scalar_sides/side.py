"""Interface of a kind of side of a transported scalar."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from simkit.flow.boundary.side_data import OwnValues, Place, known_share


class ScalarSide(OwnValues):
    """A kind of side of a scalar; this base class is an insulated side, and subclasses override what differs.

    To add a kind, derive a frozen dataclass from this class; its objects are given to `simkit.flow.TransportedScalar`
    in place of names of kinds. Data that it holds is returned by `values`.

    Attributes:
        kind: name in messages.
        takes: whether it uses a given number.
        is_given: whether a flow through it carries the given number, as required where the flow enters.
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
        """Return the diffusive flux into the fluid through the side, per area and time, as one layer.

        By default that of `share` times the slope to the given number.

        Args:
            scalar: at the cell centers.
            given: the given number, as one layer.
            diffusivity: diffusivity of the scalar.
            place: position of the side; ``place.slope(f, value)`` is the derivative for a given value.
            values: the result of `values`.
        """
        share = known_share(self.kind, self.share(place, values), "entering")
        if isinstance(share, float) and share == 0:
            return jnp.zeros_like(given)
        slope = place.slope(scalar, given)
        flux = diffusivity * (slope if place.side else -slope)
        return flux if isinstance(share, float) and share == 1 else share * flux

    def carried(self, scalar: jax.Array, given: jax.Array, place: Place) -> jax.Array:
        """Return the scalar that a flow through the side carries, as one layer: that of the nearest cells."""
        return place.nearest(scalar)
