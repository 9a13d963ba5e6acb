"""Kinds of sides of a scalar that the flow carries, each in one file."""

from simkit.flow.boundary.scalar_sides.flux import GivenFlux
from simkit.flow.boundary.scalar_sides.insulated import Insulated
from simkit.flow.boundary.scalar_sides.side import ScalarSide
from simkit.flow.boundary.scalar_sides.value import GivenValue

# Kinds known by name.
SIDES = {side.kind: side for side in (GivenValue(), GivenFlux(), Insulated())}

__all__ = ["SIDES", "GivenFlux", "GivenValue", "Insulated", "ScalarSide"]
