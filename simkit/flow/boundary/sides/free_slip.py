"""Sides along which the flow slips freely."""

import dataclasses

from simkit.flow.boundary.sides.side import Side


@dataclasses.dataclass(frozen=True)
class FreeSlip(Side):
    """A side, or a plane of symmetry: nothing passes, and there is no shear."""

    kind = "free_slip"
    drawn_as = "free_slip"
