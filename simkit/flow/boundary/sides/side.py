"""A kind of side of a domain: what the equations ask of it."""

from typing import Any, ClassVar

import jax

from simkit.flow.arrays import Velocity
from simkit.flow.boundary.given import OwnValues, known_share
from simkit.flow.boundary.place import Place


class Side(OwnValues):
    """A kind of side of a domain. Subclasses say what differs from a closed side without shear, which this one is.

    A kind of your own is a frozen dataclass that derives from this class, or from one that is like it; its objects
    stand in `simkit.flow.domain` where names of kinds do. What it holds besides (numbers, or functions of the
    parameters and the time) it returns from `values`, which every other method is then given.

    Every side but those that give the pressure settles the velocity through it before the pressure is found, so that
    pressure has no slope there. Along it the velocity f_0 follows from the slope into the domain; `share` says how, or
    `slope` where that is not linear.

    Attributes:
        kind: name in messages.
        drawn_as: how pictures show it: "wall", "free_slip", "inflow", "outflow" or "pressure".
        takes_along: whether it uses the velocity along it that ``boundary`` gives.
        sticks: whether the velocity along it is the given one.
        enters: whether the velocity through it is the given one.
        leaves: whether the velocity through it moves with `acceleration`. After each stage it is shifted by one
            constant, the same on all such sides, so that all that enters leaves.
        gives_pressure: whether it gives the pressure, `simkit.flow.equations.Equations.side_pressure`, in place of the
            velocity through it, which then follows from the equations.
    """

    kind: ClassVar[str] = "closed"
    drawn_as: ClassVar[str] = "free_slip"
    takes_along: ClassVar[bool] = False
    sticks: ClassVar[bool] = False
    enters: ClassVar[bool] = False
    leaves: ClassVar[bool] = False
    gives_pressure: ClassVar[bool] = False

    def share(self, component: int, place: Place, values: Any) -> jax.Array | float | None:
        """Return the slope of a velocity along the side, over that which a wall would cause.

        1.0 for a wall, 0.0 without shear, or a traced number. A slope that is given, which `slope` may add, does not
        count. None where the slope is not linear in the velocity: implicit friction across such a side is refused.

        Args:
            component: which one.
            place: where the side is.
            values: those of `values`.
        """
        return 0.0

    def slope(
        self, f: jax.Array, component: int, given: jax.Array | float, place: Place, values: Any
    ) -> jax.Array | None:
        """Return the derivative across the side, on it, of a velocity along it, as one layer; None for zero.

        By default `share` times that at a wall of the given velocity.

        Args:
            f: the component of the velocity, at the cell centers along the axis.
            component: which one.
            given: that of the velocity on the side.
            place: where the side is; ``place.slope(f, value)`` is the derivative at a wall.
            values: those of `values`.
        """
        share = known_share(self.kind, self.share(component, place, values), "slope")
        if isinstance(share, float) and share == 0:
            return None
        slope = place.slope(f, place.layer(f, given))
        return slope if isinstance(share, float) and share == 1 else share * slope

    def acceleration(self, velocity: Velocity, place: Place) -> jax.Array | None:
        """Return that of the velocity through the side, as one layer; None for zero."""
        return None
