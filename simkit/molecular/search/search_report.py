"""Success rate and mean cost of a search by many walkers."""

from typing import NamedTuple

import numpy as np


class SearchReport(NamedTuple):
    """Success rate and mean cost of a search.

    Attributes:
        success_rate: fraction of the walkers that found the minimum.
        mean_cost: cost of all walkers, each up to its first success or its end, over the number of successes. It
            estimates the cost until one walker, restarted after each failure, finds the minimum.
    """

    success_rate: float
    mean_cost: float


def search_report(energy: np.ndarray, cost: np.ndarray, *, lowest: float, tolerance: float) -> SearchReport:
    """Return success rate and mean cost of a search for a known minimum.

    Args:
        energy: the lowest energy so far, (frames, walkers), as in the diagnostic ``energy`` of an ensemble.
        cost: accumulated cost, (frames, walkers), such as ``force_evaluations``.
        lowest: energy of the minimum.
        tolerance: excess energy that counts as success: below the gap to the next minimum, above the error of a quench.

    Returns:
        A `SearchReport`; the mean cost is infinite if no walker found it.
    """
    found = np.asarray(energy) <= lowest + tolerance
    hit = found.any(axis=0)
    frame = np.where(hit, found.argmax(axis=0), len(found) - 1)
    spent = np.take_along_axis(np.asarray(cost), frame[None], axis=0)
    return SearchReport(float(hit.mean()), float(spent.sum() / hit.sum()) if hit.any() else float("inf"))
