"""Bodies in a flow: shapes, motions, methods that impose their boundary conditions, and the loads on them."""

from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary, points_around
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.motion import Motion
from simkit.flow.obstacles.polygons import airfoil, polygon
from simkit.flow.obstacles.scalar_surface import ScalarSurface
from simkit.flow.obstacles.shapes import (
    ball,
    box,
    capsule,
    complement,
    cylinder,
    half_space,
    rotate,
    superellipse,
    translate,
    union,
)

__all__ = [
    "Body",
    "DirectForcing",
    "ImmersedBoundary",
    "Motion",
    "ScalarSurface",
    "airfoil",
    "ball",
    "bodies_in",
    "box",
    "capsule",
    "complement",
    "cylinder",
    "half_space",
    "points_around",
    "polygon",
    "rotate",
    "superellipse",
    "translate",
    "union",
]
