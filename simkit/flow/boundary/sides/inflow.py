"""Sides through which a given flow enters."""

import dataclasses
from typing import Any

from simkit.flow.boundary.place import Place
from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class Inflow(Side):
    """A side on which the whole velocity is given."""

    kind = "inflow"
    drawn_as = "inflow"
    takes_along = True
    sticks = True
    enters = True

    def share(self, place: Place, values: Any) -> float:
        """Return 1."""
        return 1.0
