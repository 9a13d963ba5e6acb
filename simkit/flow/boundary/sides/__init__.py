"""Kinds of sides of a domain, each in one file."""

from simkit.flow.boundary.sides.free_slip import FreeSlip
from simkit.flow.boundary.sides.given_pressure import GivenPressure
from simkit.flow.boundary.sides.inflow import Inflow
from simkit.flow.boundary.sides.outflow import Outflow
from simkit.flow.boundary.sides.side import Side
from simkit.flow.boundary.sides.wall import Wall

# Kinds known by name.
SIDES = {side.kind: side for side in (Wall(), FreeSlip(), Inflow(), Outflow(), GivenPressure())}

__all__ = ["SIDES", "FreeSlip", "GivenPressure", "Inflow", "Outflow", "Side", "Wall"]
