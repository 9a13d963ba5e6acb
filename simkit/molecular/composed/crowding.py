"""Room that lists of neighbors begin with, from how densely particles start."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
from jax.core import Tracer

from simkit.molecular.composed.pair_terms import PairTerm
from simkit.molecular.neighbors.pair_sums import FEWEST_COLUMNS

if TYPE_CHECKING:
    from simkit.molecular.composed.system import Composition

# Neighbors of the most crowded particle in terms of the mean: of particles apart from each other, of those whose cell
# relaxes and may get denser on its way, and of those thrown anywhere, by standard deviations of a Poisson distribution.
APART, SHRINKING, DEVIATIONS = 1.3, 1.5, 6.0
FEW = 4


def crowd_of(made: "Composition") -> Callable[[PairTerm, float], int | None] | None:
    """Return ``(term, skin) -> `` neighbors that a list has room for at the start; a run that needs more grows.

    Args:
        made: the system; in free space, where nothing says how dense it gets, there is no such number.
    """
    room, members, placing = made.room, made.members, made.placing
    if not room.is_closed:
        return None
    thrown = placing.random is not None and not placing.random.separation
    factor = SHRINKING if made.settings["relax"]["cell"] else APART

    def crowd(term: PairTerm, skin: float) -> int | None:
        if term.cutoff is None or any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(made.params)):
            return None
        reach = (1 + skin) * float(term.reach(made.params))
        spacing = float(placing.spacing(made.params, members.count, room.dimension))
        ball = math.pi if room.dimension == 2 else 4 / 3 * math.pi
        mean = ball * (reach / spacing) ** room.dimension
        wanted = mean + DEVIATIONS * math.sqrt(mean) if thrown else factor * mean + FEW
        cells = 1 if made.images is None else math.prod(made.images)
        # Whole groups of the columns that sums take at once.
        return min(FEWEST_COLUMNS * math.ceil(wanted / FEWEST_COLUMNS), members.count * cells)

    return crowd
