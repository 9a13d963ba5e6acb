"""Sweeps of converging simulations in lanes: a member that ends is replaced by the next in the queue."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import sized_like
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, State
from simkit.core.status import stops
from simkit.engine.driver import Program
from simkit.engine.lane_records import fault_of
from simkit.engine.loop import Piece, run_all
from simkit.engine.plan import Plan
from simkit.storage.store import Store

# A lane whose member ends idles for half a segment on average, so segments are shorter than those of a run.
SEGMENTS = 100

# What keeps a processor busy, with little left to wait for at the end; and what fills another device.
LANES_ON_CPU = 32
LANES_ELSEWHERE = 1024

type Inputs = Callable[[np.ndarray], tuple[Params, jax.Array]]
"""``members -> (params, keys)`` for these members in this order."""


def usual_lanes() -> int:
    """Return how many members run together where memory allows more."""
    return LANES_ON_CPU if jax.default_backend() == "cpu" else LANES_ELSEWHERE


@pytree
class Lanes:
    """Members under way.

    Attributes:
        state: one state per lane.
        member: int32, (lanes,); the member in each; the number of members stands for an empty lane.
        frame: int32, (lanes,); frames taken of it since its initial one.
        latest: its diagnostics and status at that frame, (lanes,) each.
        waiting: int32, the next member to begin.
    """

    state: State
    member: Any
    frame: Any
    latest: dict[str, Any]
    waiting: Any


@dataclasses.dataclass(frozen=True)
class Queue:
    """Members that take turns in a number of lanes, as `simkit.engine.loop.Work`.

    After each segment those whose status stops them, and those who have used up their steps, leave; the next in line
    begin in their lanes. Which member is in which lane when follows from the results alone, so work that was
    interrupted goes on bit for bit.

    Attributes:
        program: of an ensemble as large as there are lanes, for ``plan``.
        plan: steps and frames of each.
        members: how many there are.
        lanes: how many run together.
        inputs: their parameters and keys.
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

        What is returned after the frame in which a member ended means nothing.

        Args:
            store: where segments and checkpoints go, or ``None``.
            report: called with the fraction done and a few words.
            warn: called with one line about damaged files.
        """

        def on_piece(piece: Piece) -> None:
            ended = self._ended(piece.state)
            report(ended / self.members, f"{ended} of {self.members} members")

        return self._joined(run_all(self, store, warn, on_piece)[0])

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Queue, Piece] | None":
        """Return the last stored piece from which the sweep can go on, if there is one."""
        template = self._template()
        params, _ = self._inputs(np.zeros(self.lanes, np.int32))
        growing = self.program.simulation.sized_like is not None
        advance = (lambda lanes: self.program.advance(lanes.state, params)) if growing else None
        found = store.restore(template, warn, advance=advance)
        if found is None:
            return None
        index, current, arrays = found
        if fault := self._fault(store.read(), current):
            warn(f"{store.folder}: its segments and checkpoint hold {fault}; starting from the beginning")
            store.discard()
            return None
        program = self.program
        if _shapes(current.state) != _shapes(template.state):
            program = program.with_buffers_of(current.state)
        return dataclasses.replace(self, program=program), self._piece(index, current, arrays)

    def begin(self) -> "tuple[Queue, Piece]":
        """Return the segment in which the first members begin."""
        return self._next(0, None)

    def advance(self, piece: Piece) -> "tuple[Queue, Piece]":
        """Return the next segment, in which further members have taken the lanes that became free."""
        return self._next(piece.index + 1, piece.state)

    def _next(self, index: int, current: Lanes | None) -> "tuple[Queue, Piece]":
        program, current = self._filled(current)
        program, current, arrays = self._advanced(program, current)
        return dataclasses.replace(self, program=program), self._piece(index, current, arrays)

    def _piece(self, index: int, current: Lanes, arrays: dict[str, np.ndarray]) -> Piece:
        return Piece(index, current, arrays, finished=self._ended(current) >= self.members)

    def _ended(self, current: Lanes) -> int:
        return int(current.waiting) - int(np.sum(np.asarray(current.member) < self.members))

    def _fault(self, pieces: Sequence[Mapping[str, np.ndarray]], current: Lanes) -> str | None:
        member, frame = np.asarray(current.member), np.asarray(current.frame)
        counts = {"members": self.members, "frames": self.plan.frames}
        return fault_of(pieces, member, frame, int(current.waiting), **counts)

    def _inputs(self, member: np.ndarray) -> tuple[Params, jax.Array]:
        # An empty lane repeats the last member; what comes of it is dropped.
        return self.inputs(np.minimum(member, self.members - 1))

    def _template(self) -> Lanes:
        state, first = jax.eval_shape(self.program.initialize, *self._inputs(np.zeros(self.lanes, np.int32)))
        number = jax.ShapeDtypeStruct((self.lanes,), np.int32)
        latest = {f"diagnosed.{name}": leaf for name, leaf in first.diagnosed.items()} | {"status": first.status}
        latest = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in latest.items()}
        waiting = jax.ShapeDtypeStruct((), np.int32)
        return Lanes(state=state, member=number, frame=number, latest=latest, waiting=waiting)

    def _filled(self, current: Lanes | None) -> tuple[Program, Lanes]:
        """Return lanes in which as many members as there is room for have begun."""
        waiting = 0 if current is None else int(current.waiting)
        member = np.full(self.lanes, self.members, np.int32) if current is None else np.array(current.member)
        free = np.flatnonzero(member == self.members)[: self.members - waiting]
        if not free.size and current is not None:
            return self.program, current
        member[free] = waiting + np.arange(free.size)
        program, state, latest = self.program.roomy(lambda program, _: program.initialize(*self._inputs(member)))
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
        """Return lanes after a segment, without the members that ended in it, and what is to be stored of it."""
        member, frame = np.array(current.member), np.array(current.frame)
        params, _ = self._inputs(member)
        program, state, rows = program.roomy(lambda program, start: program.advance(start, params), current.state)
        # The frame before the segment comes first: it may be the initial one, or already the last.
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
        self, pieces: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return what segments stored lane by lane, member by member."""
        recorded: dict[str, np.ndarray] = {}
        observed: dict[str, np.ndarray] = {}
        for piece in pieces:
            (present,) = np.nonzero(piece["member"] < self.members)
            for name, array in piece.items():
                if name.startswith("observed."):
                    shape = (self.members, *array.shape[1:])
                    table = observed.setdefault(name.removeprefix("observed."), np.zeros(shape, array.dtype))
                    table[piece["left"]] = array
                elif name not in ("member", "frame", "left"):
                    table = recorded.setdefault(name, np.zeros((self.plan.frames + 1, self.members), array.dtype))
                    rows = piece["frame"] + np.arange(len(array))[:, None]
                    table[rows[:, present], piece["member"][present]] = array[:, present]
        return recorded, observed


def _shapes(state: State) -> list[tuple[int, ...]]:
    return [leaf.shape for leaf in jax.tree.leaves(state)]


@jax.jit
def _chosen(entering: jax.Array, state: State, former: State) -> State:
    """Return the states of members that enter, and of the others as they were."""
    return jax.tree.map(
        lambda new, old: jnp.where(entering.reshape(-1, *[1] * (old.ndim - 1)), new, old), state, former
    )
