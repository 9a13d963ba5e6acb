"""Sides of a domain: walls, planes of symmetry, inflow, outflow and given pressure, and their interface."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params
from simkit.flow.boundary.side_data import ON_SIDE, OfTime, OwnValues, Place, known_share
from simkit.flow.grid import Velocity
from simkit.flow.operators.differences import difference_at_centers


class Side(OwnValues):
    """A kind of side of a domain; this base class is closed and free of shear, and subclasses override what differs.

    To add a kind, derive a frozen dataclass from this class or a similar one; its objects are given to
    `simkit.flow.domain` in place of names of kinds. Data that it holds (numbers, or functions of the parameters and
    the time) is returned by `values` and passed to every other method. For scenario files the class declares its data
    by `simkit.core.part` and is registered, see `simkit.flow.parts`; the keys of the velocity, the pressure and the
    color in pictures follow from the attributes below.

    Except on sides that give the pressure, the normal velocity is known before the pressure is solved for, so that
    the pressure has zero slope there. The tangential velocity f_0 follows from the slope into the domain, given by
    `share`, or by `slope` where it is not linear.

    Attributes:
        kind: name in messages.
        drawn_as: how pictures show it: "wall", "free_slip", "inflow", "outflow" or "pressure".
        takes_along: whether it uses the tangential velocity given by ``boundary``.
        sticks: whether the tangential velocity is the given one.
        enters: whether the normal velocity is the given one.
        leaves: whether the normal velocity changes by `acceleration`. After each stage it is shifted by one constant,
            the same on all such sides, so that outflow balances inflow.
        gives_pressure: whether the pressure is given, `simkit.flow.equations.Equations.side_pressure`, and the normal
            velocity follows from the equations.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass(frozen=True)
        ... class Belt(flow.Side):
        ...     kind = "belt"
        ...     sticks = takes_along = True
        ...
        ...     def share(self, component, place, values):
        ...         return 1.0
        >>> axes = (flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0))
        >>> flow.domain(axes, (None, ("wall", Belt()))).sides[1][1].kind
        'belt'
    """

    kind: ClassVar[str] = "closed"
    drawn_as: ClassVar[str] = "free_slip"
    takes_along: ClassVar[bool] = False
    sticks: ClassVar[bool] = False
    enters: ClassVar[bool] = False
    leaves: ClassVar[bool] = False
    gives_pressure: ClassVar[bool] = False

    @classmethod
    def is_wall(cls) -> bool:
        """Return whether it is a wall: pictures draw a band there, and diagnostics have the shear stress on it."""
        return cls.drawn_as == Wall.drawn_as

    @classmethod
    def prescribes_velocity(cls) -> bool:
        """Return whether its velocity is the given one alone: such sides together are one profile of the velocity."""
        return cls.sticks and not (cls.leaves or cls.gives_pressure or cls.values is not OwnValues.values)

    def share(self, component: int, place: Place, values: Any) -> jax.Array | float | None:
        """Return the slope of a tangential velocity at the side, relative to the slope at a wall.

        1.0 for a wall, 0.0 without shear, or a traced number; a constant slope, which `slope` may add, is left out.
        None if the slope is not linear in the velocity: implicit friction across such a side is refused.

        Args:
            component: index of the velocity component.
            place: position of the side.
            values: the result of `values`.
        """
        return 0.0

    def slope(
        self, f: jax.Array, component: int, side_values: jax.Array | float, place: Place, values: Any
    ) -> jax.Array | None:
        """Return the normal derivative of a tangential velocity on the side, as one layer; None for zero.

        By default `share` times that at a wall of the given velocity.

        Args:
            f: the component of the velocity, at the cell centers along the axis.
            component: index of the velocity component.
            side_values: the given value of that component on the side.
            place: position of the side; ``place.slope(f, value)`` is the derivative at a wall.
            values: the result of `values`.
        """
        share = known_share(self.kind, self.share(component, place, values), "slope")
        if isinstance(share, float) and share == 0:
            return None
        slope = place.slope(f, place.layer(f, side_values))
        return slope if isinstance(share, float) and share == 1 else share * slope

    def acceleration(self, velocity: Velocity, place: Place) -> jax.Array | None:
        """Return the acceleration of the normal velocity, as one layer; None for zero."""
        return None


@part(excludes={"slip_length": "on which the fluid sticks (a 'navier_slip' side takes one)"})
@dataclasses.dataclass(frozen=True)
class Wall(Side):
    """A wall: the normal velocity is zero, and the tangential velocity is that of the wall.

    Example:
        >>> flow.Wall().kind, flow.Wall().sticks, flow.Wall().enters
        ('wall', True, False)
    """

    kind = "wall"
    drawn_as = "wall"
    takes_along = True
    sticks = True

    def share(self, component: int, place: Place, values: Any) -> float:
        """Return 1."""
        return 1.0


@part(values={"slip_length": formula("slip length", bounds=NOT_NEGATIVE, takes=ON_SIDE)})
@dataclasses.dataclass(frozen=True)
class NavierSlip(Side):
    """A wall on which the fluid slips, by the slip length times the slope of the velocity.

        u - u_wall = slip_length du/dn,    n into the fluid

    Attributes:
        slip_length: ``(params, time) -> number``, 0 for a wall; or an array of one layer, along explicit axes.

    Example:
        >>> slip = flow.NavierSlip(lambda params, time: params["slip_length"])
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 2.0, origin=-1.0))
        >>> channel = flow.domain(axes, (None, (slip, slip)))
        >>> float(slip.values({"slip_length": 0.1}, jnp.array(0.0)))
        0.1
    """

    slip_length: OfTime

    kind = "navier_slip"
    drawn_as = "wall"
    takes_along = True

    def values(self, params: Params, time: jax.Array) -> jax.Array | float:
        """Return the slip length."""
        return self.slip_length(params, time)

    def share(self, component: int, place: Place, values: Any) -> jax.Array | float:
        """Return ``1/(1 + slip_length (near - far))``, with the weights of the slope at a wall."""
        near, far = place.weights
        return 1 / (1 + values * (near - far))


@part(excludes={"slip_length": "on which the velocity is given"})
@dataclasses.dataclass(frozen=True)
class Inflow(Wall):
    """A side on which all components of the velocity are given, tangential and normal.

    Example:
        >>> axes = (flow.bounded_axis(8, 2.0), flow.bounded_axis(6, 1.0))
        >>> wind = flow.domain(axes, ((flow.Inflow(), flow.Outflow()), ("free_slip", "free_slip")))
        >>> wind.entrances()
        [(0, 0)]
    """

    kind = "inflow"
    drawn_as = "inflow"
    enters = True


@dataclasses.dataclass(frozen=True)
class FreeSlip(Side):
    """A free-slip side or plane of symmetry: zero normal velocity and zero shear.

    Example:
        >>> axes = (flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0))
        >>> half = flow.domain(axes, (None, (flow.Wall(), flow.FreeSlip())))
        >>> [side.kind for side in half.sides[1]]
        ['wall', 'free_slip']
    """

    kind = "free_slip"
    drawn_as = "free_slip"


@dataclasses.dataclass(frozen=True)
class Outflow(Side):
    """A side through which the flow leaves: the mean outflow velocity advects the velocity field out of the domain.

    Example:
        >>> axes = (flow.bounded_axis(8, 2.0), flow.bounded_axis(6, 1.0))
        >>> wind = flow.domain(axes, ((flow.Inflow(), flow.Outflow()), ("free_slip", "free_slip")))
        >>> wind.exits()
        [(0, 1)]

    Reference: Orlanski, J. Comput. Phys. 21, 251 (1976), doi:10.1016/0021-9991(76)90023-1.
    """

    kind = "outflow"
    drawn_as = "outflow"
    leaves = True

    def acceleration(self, velocity: Velocity, place: Place) -> jax.Array:
        """Return ``-c df/dn`` with the mean outward velocity c, not negative."""
        slope = place.nearest(difference_at_centers(velocity[place.axis], place.axis, place.grid)) * place.outward
        return -jnp.maximum(place.flux(velocity) / place.area, 0) * slope


@dataclasses.dataclass(frozen=True)
class GivenPressure(Side):
    """An open side on which the pressure is given, see `simkit.flow.equations.Equations`.

    The normal velocity follows from the equations, inward or outward. No velocity component has a slope normal to it.

    Example:
        >>> axes = (flow.bounded_axis(8, 2.0), flow.bounded_axis(6, 1.0))
        >>> duct = flow.domain(axes, ((flow.GivenPressure(), flow.GivenPressure()), ("wall", "wall")))
        >>> duct.open_sides()
        [(0, 0), (0, 1)]
    """

    kind = "pressure"
    drawn_as = "pressure"
    gives_pressure = True
