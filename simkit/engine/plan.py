"""Segments of a run: their number and length."""

import dataclasses
import math

from simkit.scenario.scenario import Scenario

# Enough segments that little is lost and progress is seen, few enough that each is worth a file.
SEGMENTS = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a run is cut: fixed by its settings alone, so that the same run makes the same files.

    Attributes:
        steps: number of steps (at most, if the simulation stops when done).
        every: steps between frames; divides ``steps``.
        least_segments: how many segments there are at least, if there are so many frames.
    """

    steps: int
    every: int
    least_segments: int = SEGMENTS

    @property
    def frames(self) -> int:
        """Frames in all, without the initial one."""
        return self.steps // self.every

    @property
    def frames_per_segment(self) -> int:
        """The largest divisor of ``frames`` that leaves at least ``least_segments`` segments (else one frame each)."""
        small = [d for d in range(1, math.isqrt(self.frames) + 1) if self.frames % d == 0]
        divisors = [*small, *(self.frames // d for d in small)]
        return max(d for d in divisors if d <= max(self.frames // self.least_segments, 1))

    @property
    def segments(self) -> int:
        """Number of segments after the initial frame."""
        return self.frames // self.frames_per_segment


def plan_of(scenario: Scenario) -> Plan:
    """Return how a scenario's run is cut into segments.

    Args:
        scenario: overrides applied.
    """
    return Plan(scenario.run.steps, scenario.run.every)
