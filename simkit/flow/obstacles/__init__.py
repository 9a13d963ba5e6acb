"""Bodies in a flow: shapes, motions, methods that impose their boundary conditions, and the loads on them."""

from simkit.flow.obstacles.body import Body, Motion
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary, points_around
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.shapes import (
    airfoil,
    ball,
    box,
    capsule,
    complement,
    cylinder,
    half_space,
    polygon,
    rotate,
    superellipse,
    translate,
    union,
)
from simkit.flow.obstacles.surface_conditions import ScalarSurface

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
