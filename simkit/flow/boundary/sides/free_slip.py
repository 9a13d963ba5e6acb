"""Sides along which the flow slips freely."""

import dataclasses

from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class FreeSlip(Side):
    """A free-slip side or plane of symmetry: zero normal velocity and zero shear."""

    kind = "free_slip"
    drawn_as = "free_slip"
