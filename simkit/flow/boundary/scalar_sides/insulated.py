"""Sides through which no scalar diffuses."""

import dataclasses

from simkit.flow.boundary.scalar_sides.side import ScalarSide


@dataclasses.dataclass(frozen=True)
class Insulated(ScalarSide):
    """A side through which nothing diffuses; a flow through it carries what is in the nearest cells."""

    kind = "insulated"
