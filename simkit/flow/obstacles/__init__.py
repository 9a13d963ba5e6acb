"""Bodies in a flow: their shapes, how they hold the flow, and what the flow does to them."""

from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary
from simkit.flow.obstacles.shapes import ball, box, complement, half_space, rotate, superellipse, translate, union

__all__ = [
    "DirectForcing",
    "ImmersedBoundary",
    "ball",
    "box",
    "complement",
    "half_space",
    "rotate",
    "superellipse",
    "translate",
    "union",
]
