"""Sides on which the pressure is given."""

import dataclasses

from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class GivenPressure(Side):
    """An open side on which the pressure is given, see `simkit.flow.equations.Equations`.

    The velocity through it is whatever the equations say, in or out. No velocity has a slope across it.
    """

    kind = "pressure"
    drawn_as = "pressure"
    gives_pressure = True
