"""The one host loop: compiled segments, with storage, progress and an orderly stop between them."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from simkit.core.rollout import frames
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of
from simkit.runtime.store import Store

# Enough segments that little is lost and progress is seen, few enough that each is worth a file.
SEGMENTS = 20

type Compiled = Callable[[State, Params], tuple[State, Any]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a run is cut: fixed by its settings alone, so that the same run makes the same files.

    Attributes:
        steps: number of steps (at most, if the simulation stops when done).
        every: steps between frames; divides ``steps``.
    """

    steps: int
    every: int

    @property
    def frames(self) -> int:
        """Frames in all, without the initial one."""
        return self.steps // self.every

    @property
    def frames_per_segment(self) -> int:
        """The largest divisor of ``frames`` that leaves at least ``SEGMENTS`` segments (else one frame each)."""
        return max(d for d in range(1, max(self.frames // SEGMENTS, 1) + 1) if self.frames % d == 0)

    @property
    def segments(self) -> int:
        """Number of segments after the initial frame."""
        return self.frames // self.frames_per_segment


@dataclasses.dataclass(frozen=True)
class Piece:
    """One finished segment.

    Attributes:
        index: 0 for the initial frame, then 1, 2, ...
        state: the state in which it ends.
        arrays: ``{"observed.NAME" | "diagnosed.NAME" | "status": array}`` with a leading frame axis.
        status: status codes at the end: a scalar, or one per member.
        finished: whether nothing is left to do, because the run is done, has failed or has used its steps.
    """

    index: int
    state: State
    arrays: dict[str, np.ndarray]
    status: np.ndarray
    finished: bool


def compile_segment(simulation: Simulation, plan: Plan) -> Any:
    """Return the jitted ``(state, params) -> (state, Frames)`` of one segment."""
    return jax.jit(frames(simulation, plan.every, plan.frames_per_segment))


def drive(
    simulation: Simulation,
    params: Params,
    key: jax.Array,
    plan: Plan,
    *,
    store: Store | None = None,
    compiled: Compiled | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Iterator[Piece]:
    """Run a simulation segment by segment, yielding each as it is finished and stored.

    Whoever iterates may stop at any time; a later call with the same store goes on from there, bit for bit. Segments
    already stored are not yielded again: the first piece is the last stored one.

    A segment in which an array overflows its capacity is run again from its start with more room, so that nothing
    computed with a missing neighbor is ever stored.

    Args:
        simulation: what to run.
        params: its parameters.
        key: random key (one per member for an ensemble).
        plan: steps and frames.
        store: where segments and checkpoints go; ``None`` keeps nothing on disk.
        compiled: the result of `compile_segment`, if the caller has it already.
        warn: told in one line when a damaged file is passed over.
    """
    can_grow = simulation.grow is not None
    template = jax.eval_shape(simulation.init, params, key) if store else None
    found = store.restore(template, warn, resizable=can_grow) if store else None
    if found:
        index, state, arrays = found
        piece = _piece_of(index, state, arrays, plan)
    else:
        piece = _first_piece(simulation, params, key, plan)
        while can_grow and _overflowed(piece):
            simulation, _ = _grown(simulation, piece.state, piece.state)
            piece = _first_piece(simulation, params, key, plan)
        if store:
            store.create()
            store.write(0, piece.state, piece.arrays)
    yield piece
    advance = compiled or compile_segment(simulation, plan)
    while not piece.finished:
        start = piece.state
        piece = _piece(piece.index + 1, *advance(start, params), plan)
        while can_grow and _overflowed(piece):
            simulation, start = _grown(simulation, piece.state, start)
            piece = _piece(piece.index, *advance(start, params), plan)
        if store:
            store.write(piece.index, piece.state, piece.arrays)
        yield piece


def final_status(simulation: Simulation, piece: Piece) -> np.ndarray:
    """Return the status of a finished run: one that should have converged and has not used up its steps.

    Args:
        simulation: what ran.
        piece: its last segment.
    """
    if simulation.done is None:
        return piece.status
    return np.where(piece.status == Status.OK, np.int32(Status.MAX_STEPS), piece.status)


def _overflowed(piece: Piece) -> bool:
    return bool(np.any(piece.status == Status.NEIGHBOR_OVERFLOW))


def _grown(simulation: Simulation, overflowed: State, start: State) -> tuple[Simulation, State]:
    larger, start = simulation.grow(overflowed, start)
    # What is compiled takes states of any capacity; only new states must be made larger.
    return dataclasses.replace(simulation, init=larger.init, grow=larger.grow), start


def _first_piece(simulation: Simulation, params: Params, key: jax.Array, plan: Plan) -> Piece:
    """Return the initial state with its own frame, as a stack of one."""

    def initialize(params: Params, key: jax.Array) -> tuple[State, Any]:
        state = simulation.init(params, key)
        recorded = {
            "observed": simulation.observe(state, params),
            "diagnosed": simulation.diagnose(state, params),
            "status": status_of(simulation)(state, params),
        }
        return state, jax.tree.map(lambda leaf: leaf[None], recorded)

    return _piece(0, *jax.jit(initialize)(params, key), plan)


def _piece(index: int, state: State, recorded: Any, plan: Plan) -> Piece:
    groups = recorded if isinstance(recorded, dict) else vars(recorded)
    arrays = {
        f"{group}.{name}": np.asarray(array)
        for group in ("observed", "diagnosed")
        for name, array in groups[group].items()
    }
    status = np.asarray(groups["status"])
    ended = np.all((status != Status.OK).reshape(len(status), -1), axis=1)
    if ended.any():
        # Once every member has stopped, further frames would only repeat the last one.
        keep = int(np.argmax(ended)) + 1
        arrays, status = {name: array[:keep] for name, array in arrays.items()}, status[:keep]
    return _piece_of(index, state, arrays | {"status": status}, plan)


def _piece_of(index: int, state: State, arrays: dict[str, np.ndarray], plan: Plan) -> Piece:
    status = arrays["status"][-1]
    stopped = bool(np.all(status != Status.OK))
    return Piece(index=index, state=state, arrays=arrays, status=status, finished=stopped or index >= plan.segments)
