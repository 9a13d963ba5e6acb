"""Cost of a search by many walkers: how many found the minimum, and the work per success."""

from typing import NamedTuple

import numpy as np


class SearchReport(NamedTuple):
    """How well walkers search.

    Attributes:
        success_rate: fraction of the walkers that found the minimum.
        mean_cost: work of all walkers, each up to its first finding or to its end, over the number of findings. It
            estimates the work until one walker, started anew whenever it gives up, finds the minimum.
    """

    success_rate: float
    mean_cost: float


def search_report(energy: np.ndarray, cost: np.ndarray, *, lowest: float, tolerance: float) -> SearchReport:
    """Return how many walkers found the lowest minimum, and at what cost.

    Args:
        energy: the lowest energy so far, (frames, walkers), as in the diagnostic ``energy`` of an ensemble.
        cost: work so far, (frames, walkers), such as ``force_evaluations``.
        lowest: energy of the minimum looked for.
        tolerance: how far above it counts: less than the gap to the next minimum, more than what is left to polish.

    Returns:
        A `SearchReport`; the mean cost is infinite if no walker found it.
    """
    found = np.asarray(energy) <= lowest + tolerance
    hit = found.any(axis=0)
    frame = np.where(hit, found.argmax(axis=0), len(found) - 1)
    spent = np.take_along_axis(np.asarray(cost), frame[None], axis=0)
    return SearchReport(float(hit.mean()), float(spent.sum() / hit.sum()) if hit.any() else float("inf"))
