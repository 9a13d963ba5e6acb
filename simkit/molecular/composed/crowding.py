"""Initial capacity of neighbor lists, from the density of the starting positions."""

import math
from collections.abc import Callable

import jax
from jax.core import Tracer

from simkit.core.simulation import Params
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.pair_terms import PairTerm
from simkit.molecular.composed.particles import Particles
from simkit.molecular.composed.placing import Placing
from simkit.molecular.neighbors.pair_sums import FEWEST_COLUMNS

# Most neighbors of a particle in units of the mean: of separated particles, and in a cell that relaxes and may shrink;
# of random positions without separation, in standard deviations of a Poisson distribution.
APART, SHRINKING, DEVIATIONS = 1.3, 1.5, 6.0
FEW = 4


def crowd_of(
    room: SystemCell, members: Particles, placing: Placing, params: Params, *, shrinks: bool, cells: int
) -> Callable[[PairTerm, float], int | None] | None:
    """Return ``(term, skin) -> `` initial capacity of a list, which grows when a run needs more; ``None`` without cell.

    Args:
        room: the cell; in free space the density is unknown.
        members: the particles.
        placing: starting positions.
        params: default parameters.
        shrinks: whether the cell relaxes and may get smaller.
        cells: number of interacting cells.
    """
    if not room.is_closed:
        return None
    thrown = placing.random is not None and not placing.random.separation
    factor = SHRINKING if shrinks else APART

    def crowd(term: PairTerm, skin: float) -> int | None:
        if term.cutoff is None or any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params)):
            return None
        reach = (1 + skin) * float(term.reach(params))
        spacing = float(placing.spacing(params, members.count, room.dimension))
        ball = math.pi if room.dimension == 2 else 4 / 3 * math.pi
        mean = ball * (reach / spacing) ** room.dimension
        wanted = mean + DEVIATIONS * math.sqrt(mean) if thrown else factor * mean + FEW
        # A multiple of the columns that the pair sums take per turn.
        return min(FEWEST_COLUMNS * math.ceil(wanted / FEWEST_COLUMNS), members.count * cells)

    return crowd
