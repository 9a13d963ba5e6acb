"""State of a system of particles from which quantities are computed, whatever the task."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from simkit.core.simulation import Arrays, Params
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Moment:
    """Positions, cell, params and neighbors of a system.

    Attributes:
        position: (N, d), not wrapped into the cell.
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: params of the interaction; may hold the time.
        neighbors: neighbors of the interaction, current at the positions.
    """

    position: jax.Array
    cell: Cell
    params: Params
    neighbors: Any


class Observations(NamedTuple):
    """Quantities of a moment.

    Attributes:
        arrays: arrays that frames store.
        numbers: scalars, for diagnostics.
    """

    arrays: Arrays
    numbers: Arrays


type Observer = Callable[[Moment], Observations]
