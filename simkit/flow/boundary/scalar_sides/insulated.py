"""Sides through which no scalar diffuses."""

import dataclasses

from simkit.flow.boundary.scalar_sides.side import ScalarSide


@dataclasses.dataclass(frozen=True)
class Insulated(ScalarSide):
    """A side without diffusive flux; a flow through it carries the value in the nearest cells."""

    kind = "insulated"
