"""Lanes of a sweep of converging simulations: a member that has ended is replaced by the next in the queue."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import sized_like
from simkit.core.formulation import default_device
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, State
from simkit.core.status import stops
from simkit.engine.driver import Plan, Program, Segment, run_all
from simkit.storage.store import Store

# A lane whose member ends idles for half a segment on average, so segments are shorter than those of a run.
SEGMENTS = 100
# Enough lanes to keep a CPU busy with a short tail at the end; and enough to fill another device.
LANES_ON_CPU = 32
LANES_ELSEWHERE = 1024
type Inputs = Callable[[np.ndarray], tuple[Params, jax.Array]]
"""``members -> (params, keys)`` of members given by index, in this order."""


def default_lanes() -> int:
    """Return the number of lanes where memory allows more."""
    return LANES_ON_CPU if default_device() == "cpu" else LANES_ELSEWHERE


@pytree
class Lanes:
    """State of the lanes between two segments.

    Attributes:
        state: one state per lane.
        member: member index in each lane, int32 (lanes,); the number of members marks an empty lane.
        frame: frames taken of that member since its initial one, int32 (lanes,).
        latest: diagnostics and status at the latest frame, (lanes,) each.
        waiting: index of the next member to start, int32.
    """

    state: State
    member: Any
    frame: Any
    latest: dict[str, Any]
    waiting: Any


@dataclasses.dataclass(frozen=True)
class Queue:
    """Queue of members that run in a fixed number of lanes, as `simkit.engine.driver.Work`.

    After each segment, members that have stopped or used up their steps are removed, and the next members of the queue
    start in their lanes. The assignment of lanes follows from the results alone, so an interrupted sweep resumes bit
    for bit.

    Attributes:
        program: program, for ``plan``, of an ensemble with one member per lane.
        plan: steps and frames of each member.
        members: number of members.
        lanes: number of lanes.
        inputs: parameters and keys of members.
        observe: ``(state, params) -> arrays`` of all lanes.
    """

    program: Program
    plan: Plan
    members: int
    lanes: int
    inputs: Inputs
    observe: Callable[[State, Params], Arrays]

    def run(
        self, store: Store | None, report: Callable[[float, str], None], warn: Callable[[str], None]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Run every member until it ends; return diagnostics and status (frame, member), and last frames (member, ...).

        Entries after the frame at which a member ended are meaningless.

        Args:
            store: store of segments and checkpoints, or ``None``.
            report: called with the fraction done and a few words.
            warn: called with one line about damaged files.
        """

        def on_segment(segment: Segment) -> None:
            ended = self._ended(segment.state)
            report(ended / self.members, f"{ended} of {self.members} members")

        return self._joined(run_all(self, store, warn, on_segment)[0])

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Queue, Segment] | None":
        """Return the last stored segment from which the sweep can resume, or ``None``."""
        template = self._template()
        params, _ = self._inputs(np.zeros(self.lanes, np.int32))
        growing = self.program.simulation.sized_like is not None
        advance = (lambda lanes: self.program.advance(lanes.state, params)) if growing else None
        restored = store.restore(template, warn, advance=advance)
        if restored is None:
            return None
        index, current, arrays = restored
        program = self.program
        if _shapes(current.state) != _shapes(template.state):
            program = program.with_buffers_of(current.state)
        return dataclasses.replace(self, program=program), self._as_segment(index, current, arrays)

    def begin(self) -> "tuple[Queue, Segment]":
        """Return the first segment, in which the first members start."""
        return self._next(0, None)

    def advance(self, segment: Segment) -> "tuple[Queue, Segment]":
        """Return the next segment, in which waiting members have started in the empty lanes."""
        return self._next(segment.index + 1, segment.state)

    def _next(self, index: int, current: Lanes | None) -> "tuple[Queue, Segment]":
        program, current = self._filled(current)
        program, current, arrays = self._advanced(program, current)
        return dataclasses.replace(self, program=program), self._as_segment(index, current, arrays)

    def _as_segment(self, index: int, current: Lanes, arrays: dict[str, np.ndarray]) -> Segment:
        return Segment(index, current, arrays, finished=self._ended(current) >= self.members)

    def _ended(self, current: Lanes) -> int:
        return int(current.waiting) - int(np.sum(np.asarray(current.member) < self.members))

    def _inputs(self, member: np.ndarray) -> tuple[Params, jax.Array]:
        # An empty lane repeats the last member; its results are dropped.
        return self.inputs(np.minimum(member, self.members - 1))

    def _template(self) -> Lanes:
        state, first = jax.eval_shape(self.program.initialize, *self._inputs(np.zeros(self.lanes, np.int32)))
        number = jax.ShapeDtypeStruct((self.lanes,), np.int32)
        latest = {f"diagnosed.{name}": leaf for name, leaf in first.diagnosed.items()} | {"status": first.status}
        latest = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in latest.items()}
        waiting = jax.ShapeDtypeStruct((), np.int32)
        return Lanes(state=state, member=number, frame=number, latest=latest, waiting=waiting)

    def _filled(self, current: Lanes | None) -> tuple[Program, Lanes]:
        """Return the lanes with as many waiting members started as there are empty lanes."""
        waiting = 0 if current is None else int(current.waiting)
        member = np.full(self.lanes, self.members, np.int32) if current is None else np.array(current.member)
        free = np.flatnonzero(member == self.members)[: self.members - waiting]
        if not free.size and current is not None:
            return self.program, current
        member[free] = waiting + np.arange(free.size)
        program, state, latest = self.program.with_grown_buffers(
            lambda program, _: program.initialize(*self._inputs(member))
        )
        latest = {name: array[0] for name, array in latest.items()}
        frame = np.zeros(self.lanes, np.int32)
        if current is not None:
            entering = np.zeros(self.lanes, bool)
            entering[free] = True
            state = _chosen(entering, state, sized_like(current.state, state))
            latest = {name: np.where(entering, array, current.latest[name]) for name, array in latest.items()}
            frame = np.where(entering, frame, current.frame)
        waiting = np.int32(waiting + free.size)
        return program, Lanes(state=state, member=member, frame=frame, latest=latest, waiting=waiting)

    def _advanced(self, program: Program, current: Lanes) -> tuple[Program, Lanes, dict[str, np.ndarray]]:
        """Return the lanes after a segment, without the members that ended in it, and the arrays to store."""
        member, frame = np.array(current.member), np.array(current.frame)
        params, _ = self._inputs(member)
        program, state, rows = program.with_grown_buffers(
            lambda program, start: program.advance(start, params), current.state
        )
        # Row 0 is the frame before the segment: it may be the initial one, or the last one if the member has stopped.
        rows = {name: np.concatenate([current.latest[name][None], array]) for name, array in rows.items()}
        after = frame + self.plan.frames_per_segment
        leaves = stops(rows["status"]).any(axis=0) | (after >= self.plan.frames)
        leaves &= member < self.members
        arrays = rows | {"member": member, "frame": frame, "left": member[leaves]}
        if leaves.any():
            observed = self.observe(state, params)
            arrays |= {f"observed.{name}": np.asarray(array)[leaves] for name, array in observed.items()}
        latest = {name: array[-1] for name, array in rows.items()}
        member = np.where(leaves, np.int32(self.members), member)
        return program, dataclasses.replace(current, state=state, member=member, frame=after, latest=latest), arrays

    def _joined(
        self, segments: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return the results of all members, gathered from the lanes of the segments."""
        recorded: dict[str, np.ndarray] = {}
        observed: dict[str, np.ndarray] = {}
        for segment in segments:
            (present,) = np.nonzero(segment["member"] < self.members)
            for name, array in segment.items():
                if name.startswith("observed."):
                    shape = (self.members, *array.shape[1:])
                    table = observed.setdefault(name.removeprefix("observed."), np.zeros(shape, array.dtype))
                    table[segment["left"]] = array
                elif name not in ("member", "frame", "left"):
                    table = recorded.setdefault(name, np.zeros((self.plan.frames + 1, self.members), array.dtype))
                    rows = segment["frame"] + np.arange(len(array))[:, None]
                    table[rows[:, present], segment["member"][present]] = array[:, present]
        return recorded, observed


def _shapes(state: State) -> list[tuple[int, ...]]:
    return [leaf.shape for leaf in jax.tree.leaves(state)]


@jax.jit
def _chosen(entering: jax.Array, state: State, former: State) -> State:
    """Return new states in the lanes where ``entering`` is true, bool (lanes,), and the former ones elsewhere."""
    return jax.tree.map(
        lambda new, old: jnp.where(entering.reshape(-1, *[1] * (old.ndim - 1)), new, old), state, former
    )
