"""Sides on which the pressure is given."""

import dataclasses

from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class GivenPressure(Side):
    """An open side on which the pressure is given, see `simkit.flow.equations.Equations`.

    The normal velocity follows from the equations, inward or outward. No velocity component has a slope normal to it.
    """

    kind = "pressure"
    drawn_as = "pressure"
    gives_pressure = True
