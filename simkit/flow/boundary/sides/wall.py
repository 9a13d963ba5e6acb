"""Walls, at rest or sliding in their own plane."""

import dataclasses
from typing import Any

from simkit.flow.boundary.side_data import Place
from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class Wall(Side):
    """A wall: the normal velocity is zero, and the tangential velocity is that of the wall."""

    kind = "wall"
    drawn_as = "wall"
    takes_along = True
    sticks = True

    def share(self, component: int, place: Place, values: Any) -> float:
        """Return 1."""
        return 1.0
