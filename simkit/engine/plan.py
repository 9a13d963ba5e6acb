"""Plan of a run: its steps and frames, and its division into segments."""

import dataclasses
import math

from simkit.scenario.scenario import Scenario

# Enough segments to lose little work in a crash and to show progress, few enough to justify a file for each.
SEGMENTS = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps, frames and segments of a run, fixed by its settings alone, so that equal runs write equal files.

    Attributes:
        steps: number of steps (the maximum, if the simulation converges).
        every: steps between frames; divides ``steps``.
        least_segments: minimum number of segments, if there are as many frames.
    """

    steps: int
    every: int
    least_segments: int = SEGMENTS

    @property
    def frames(self) -> int:
        """Number of frames, without the initial one."""
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
    """Return the plan of a scenario's run.

    Args:
        scenario: scenario with overrides applied.
    """
    return Plan(scenario.run.steps, scenario.run.every)
