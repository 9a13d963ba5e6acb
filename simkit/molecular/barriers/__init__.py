"""Barriers between minima of an energy: minimum energy paths, saddles, and rates of transition-state theory."""

from simkit.molecular.barriers.band import nudged_elastic_band, nudged_forces
from simkit.molecular.barriers.rates import attempt_frequency

__all__ = ["attempt_frequency", "nudged_elastic_band", "nudged_forces"]
