"""Members of a sweep: their values and seeds, how they are arranged, and how they are divided into chunks."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from simkit.engine.plan import Plan, plan_of
from simkit.jobs.points import Axes, Points
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import ObjectiveSettings


@dataclasses.dataclass(frozen=True)
class Members:
    """The members of a sweep.

    Attributes:
        scenario: overrides applied.
        over: values by parameter.
        seeds: how many random seeds per grid point, counted up from the scenario's seed.
        chunk: members per program: one chunk after another, or, of simulations that end when they are done, as many
            lanes as that; ``None`` until `fitted` chooses.
        final_frames: whether the last frame of every member is kept beside its diagnostics.
        memory: bytes a program may take; ``None`` takes a share of what is free.
        zip: whether values at one place in all lists make a point; otherwise every combination does.
        origin: how the points were made, in words, if they are a sample or a table.
        blocks: into how many ranges members of simulations that end when they are done are divided, each with lanes of
            its own; chosen by `fitted`.
        in_one_file: whether the result is small enough to be one file, held in memory; otherwise it stays in chunks,
            and is read as far as it is used; chosen by `fitted`.
    """

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
        """Where members are run."""
        return Points(self.over, self.zip)

    @property
    def cut(self) -> Plan:
        """Steps and frames of a member."""
        return plan_of(self.scenario)

    @property
    def objectives(self) -> Mapping[str, ObjectiveSettings]:
        """What the result has of each member besides its arrays, by name."""
        return self.scenario.objectives

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes along which members are arranged."""
        return (*self.points.axes, "seed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each of their axes, then seeds."""
        return (*self.points.shape, self.seeds)

    @property
    def members(self) -> int:
        """Number of simulations."""
        return math.prod(self.shape)

    def chunk_length(self, *, converges: bool) -> int:
        """Return the number of members in each chunk but the last: of members that end when they are done, of a block.

        Args:
            converges: whether they do.
        """
        return -(-self.members // self.blocks) if converges else self.chunk or self.members

    def values_of(self, members: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the swept values and the seeds of members, given by their numbers."""
        return self.points.values_of(members // self.seeds), self.scenario.run.seed + members % self.seeds
