"""Sides through which a given flow enters."""

import dataclasses

from simkit.flow.boundary.sides.wall import Wall


@dataclasses.dataclass(frozen=True)
class Inflow(Wall):
    """A side on which all components of the velocity are given, tangential and normal."""

    kind = "inflow"
    drawn_as = "inflow"
    enters = True
