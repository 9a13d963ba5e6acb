"""One moment of a system of particles, of which quantities are made."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from simkit.core.simulation import Arrays, Params
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Moment:
    """Where particles are, and what acts on them.

    Attributes:
        position: (N, d), not wrapped into the cell.
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction; the time may be among them.
        neighbors: of the interaction, current at the position.
    """

    position: jax.Array
    cell: Cell
    params: Params
    neighbors: Any


class Seen(NamedTuple):
    """What is made of a moment.

    Attributes:
        arrays: that frames store.
        numbers: scalars, that are diagnosed.
    """

    arrays: Arrays
    numbers: Arrays


type See = Callable[[Moment], Seen]
