"""Sides through which a given flow enters."""

import dataclasses

from simkit.flow.boundary.sides.wall import Wall


@dataclasses.dataclass(frozen=True)
class Inflow(Wall):
    """A side on which the whole velocity is given: along it as on a wall, and through it too."""

    kind = "inflow"
    drawn_as = "inflow"
    enters = True
