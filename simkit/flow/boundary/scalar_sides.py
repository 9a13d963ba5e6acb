"""Sides of a transported scalar: given values and fluxes, insulation, and their interface."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params
from simkit.flow.boundary.side_data import ON_SIDE, OfTime, OwnValues, Place, known_share, nothing


class ScalarSide(OwnValues):
    """A kind of side of a scalar; this base class is an insulated side, and subclasses override what differs.

    To add a kind, derive a frozen dataclass from this class; its objects are given to `simkit.flow.TransportedScalar`
    in place of names of kinds. Data that it holds is returned by `values`. For scenario files the class declares its
    values by `simkit.core.part` and is registered, see `simkit.flow.parts`; the given number is the value with the name
    of the part, and the others are arguments of the class.

    Attributes:
        kind: name in messages.
        takes: whether it uses a given number.
        is_given: whether a flow through it carries the given number, as required where the flow enters.

    Example:
        >>> insulated = flow.ScalarSide()
        >>> insulated.kind, insulated.takes
        ('insulated', False)
    """

    kind: ClassVar[str] = "insulated"
    takes: ClassVar[bool] = False
    is_given: ClassVar[bool] = False

    def share(self, place: Place, values: Any, diffusivity: jax.Array | float) -> jax.Array | float | None:
        """Return the slope on the side over that which the given number would cause, see `Side.share` of the flow.

        Args:
            place: position of the side.
            values: the result of `values`.
            diffusivity: diffusivity of the scalar.
        """
        return 0.0

    def entering(
        self, scalar: jax.Array, side_values: jax.Array, diffusivity: jax.Array, place: Place, values: Any
    ) -> jax.Array:
        """Return the diffusive flux into the fluid through the side, per area and time, as one layer.

        By default that of `share` times the slope to the given number.

        Args:
            scalar: at the cell centers.
            side_values: the given number, as one layer.
            diffusivity: diffusivity of the scalar.
            place: position of the side; ``place.slope(f, value)`` is the derivative for a given value.
            values: the result of `values`.
        """
        share = known_share(self.kind, self.share(place, values, diffusivity), "entering")
        if isinstance(share, float) and share == 0:
            return jnp.zeros_like(side_values)
        slope = place.slope(scalar, side_values)
        flux = diffusivity * (slope if place.side else -slope)
        return flux if isinstance(share, float) and share == 1 else share * flux

    def carried(self, scalar: jax.Array, side_values: jax.Array, place: Place) -> jax.Array:
        """Return the scalar that a flow through the side carries, as one layer: that of the nearest cells."""
        return place.nearest(scalar)


@part(values={"value": formula("its value there", takes=ON_SIDE)})
@dataclasses.dataclass(frozen=True)
class GivenValue(ScalarSide):
    """A side that has the given value, which a flow through it carries."""

    kind = "value"
    takes = True
    is_given = True

    def share(self, place: Place, values: Any, diffusivity: jax.Array | float) -> float:
        """Return 1."""
        return 1.0

    def carried(self, scalar: jax.Array, side_values: jax.Array, place: Place) -> jax.Array:
        """Return the given value."""
        return side_values


@part(values={"flux": formula("flux into the fluid, per area and time", takes=ON_SIDE)})
@dataclasses.dataclass(frozen=True)
class GivenFlux(ScalarSide):
    """A side through which the given amount per area and time diffuses into the fluid."""

    kind = "flux"
    takes = True

    def entering(
        self, scalar: jax.Array, side_values: jax.Array, diffusivity: jax.Array, place: Place, values: Any
    ) -> jax.Array:
        """Return the given amount."""
        return side_values


@part(
    values={
        "coefficient": formula(
            "transfer coefficient h: the flux into the fluid is h (outside - value there)",
            bounds=NOT_NEGATIVE,
            takes=ON_SIDE,
        ),
        "outside": formula("value outside", 0.0, takes=ON_SIDE),
    }
)
@dataclasses.dataclass(frozen=True)
class Robin(ScalarSide):
    """A side through which heat is transferred: its flux is proportional to the difference from a value outside.

        h c - D dc/dn = h outside,    n into the fluid

    With h = 0 it is insulated, with a large h it has the value outside. The mixed condition ``a c + b dc/dn = g``, with
    n out of the domain, is that of ``h = a D/b`` and ``outside = g/a``.

    Attributes:
        coefficient: ``(params, time) -> h``, per area: a velocity.
        outside: ``(params, time) -> number``, or an array of one layer.

    Example:
        >>> cooled = flow.Robin(coefficient=lambda params, time: params["h"], outside=lambda params, time: 20.0)
        >>> [float(each) for each in cooled.values({"h": 0.5}, jnp.array(0.0))]
        [0.5, 20.0]
    """

    coefficient: OfTime
    outside: OfTime = nothing

    kind = "robin"

    def values(self, params: Params, time: jax.Array) -> tuple[jax.Array | float, jax.Array | float]:
        """Return the coefficient and the value outside."""
        return self.coefficient(params, time), self.outside(params, time)

    def share(self, place: Place, values: Any, diffusivity: jax.Array | float) -> jax.Array:
        """Return ``h/(h + D (near - far))``, with the weights of the slope at the side."""
        near, far = place.weights
        total = jnp.asarray(values[0] + diffusivity * (near - far))
        return values[0] / jnp.where(total > 0, total, 1)

    def entering(
        self, scalar: jax.Array, side_values: jax.Array, diffusivity: jax.Array, place: Place, values: Any
    ) -> jax.Array:
        """Return the share of the flux that the value outside would cause on the side itself."""
        return super().entering(scalar, place.layer(scalar, values[1]), diffusivity, place, values)


@dataclasses.dataclass(frozen=True)
class Insulated(ScalarSide):
    """A side without diffusive flux; a flow through it carries the value in the nearest cells."""

    kind = "insulated"
