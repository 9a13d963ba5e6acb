"""Members of a sweep: their values and seeds, the axes of points and seeds, and the division into chunks."""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from simkit.engine.plan import Plan, plan_of
from simkit.jobs.points import Axes, Points
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import ObjectiveSettings


@dataclasses.dataclass(frozen=True)
class Members:
    """The members of a sweep.

    Attributes:
        failures: names of the statuses in which a member failed, in lower case; empty for those of a run.
        scenario: scenario with overrides applied.
        over: values by parameter.
        seeds: number of random seeds per point, consecutive from the scenario's seed.
        chunk: members per program: the size of a chunk, or the number of lanes of a converging simulation; ``None``
            until chosen by `fitted`.
        final_frames: whether the last frame of every member is stored beside its diagnostics.
        memory: memory limit of a program in bytes; ``None`` takes a fraction of the free memory.
        zip: whether values at the same index of all lists make a point; otherwise every combination does.
        origin: method or file that gave the points, in words, of a sample or a table.
        blocks: number of ranges into which converging members are divided, each with its own lanes; chosen by
            `fitted`.
        in_one_file: whether the result is small enough for one file in memory; otherwise it stays in chunks, which are
            read when they are indexed; chosen by `fitted`.
    """

    failures: ClassVar[tuple[str, ...]] = ()

    scenario: Scenario
    over: Axes
    seeds: int = 1
    chunk: int | None = None
    final_frames: bool = True
    memory: int | None = None
    zip: bool = False
    origin: str = ""
    blocks: int = 1
    in_one_file: bool = True

    @property
    def points(self) -> Points:
        """Points of the swept parameters."""
        return Points(self.over, self.zip)

    @property
    def plan(self) -> Plan:
        """Steps and frames of a member's run."""
        return plan_of(self.scenario)

    @property
    def objectives(self) -> Mapping[str, ObjectiveSettings]:
        """Objectives by name, of which the result holds a value per member."""
        return self.scenario.objectives

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of points and seeds."""
        return (*self.points.axes, "seed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each of their axes, then the number of seeds."""
        return (*self.points.shape, self.seeds)

    @property
    def members(self) -> int:
        """Number of members."""
        return math.prod(self.shape)

    def chunk_length(self, *, converges: bool) -> int:
        """Return the number of members in each chunk but the last; for converging members, a chunk is a block.

        Args:
            converges: whether the simulation converges.
        """
        return -(-self.members // self.blocks) if converges else self.chunk or self.members

    def values_of(self, members: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the swept values and the seeds of members, given by index, int (n,)."""
        return self.points.values_of(members // self.seeds), self.scenario.run.seed + members % self.seeds
