"""The one host loop: compiled segments, with storage, progress and an orderly stop between them."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import frame, initial
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of
from simkit.runtime.store import Store

# Enough segments that little is lost and progress is seen, few enough that each is worth a file.
SEGMENTS = 20


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
        small = [d for d in range(1, math.isqrt(self.frames) + 1) if self.frames % d == 0]
        divisors = [*small, *(self.frames // d for d in small)]
        return max(d for d in divisors if d <= max(self.frames // SEGMENTS, 1))

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


@dataclasses.dataclass(frozen=True)
class Program:
    """A simulation compiled for a plan, to be used again for other values and keys of the same shapes.

    Attributes:
        initialize: jitted ``(params, key) -> (state, first frame)``.
        advance: jitted ``(state, params) -> (state, Frames)`` of one segment.
    """

    initialize: Any
    advance: Any

    @classmethod
    def of(cls, simulation: Simulation, plan: Plan) -> "Program":
        """Return the program of a simulation; each part is compiled when it is first called."""
        return cls(
            initialize=jax.jit(lambda params, key: _first(simulation, initial(simulation)(params, key), params)),
            advance=jax.jit(_segment(simulation, plan)),
        )


def drive(
    simulation: Simulation,
    params: Params,
    key: jax.Array,
    plan: Plan,
    *,
    store: Store | None = None,
    program: Program | None = None,
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
        program: the simulation's `Program`, if the caller has it already.
        warn: told in one line when a damaged file is passed over.
    """
    program = program or Program.of(simulation, plan)
    template = jax.eval_shape(program.initialize, params, key)[0] if store else None
    found = store.restore(template, warn, resizable=simulation.grow is not None) if store else None
    if found:
        index, state, arrays = found
        piece = _piece_of(index, state, arrays, plan)
    else:
        state, recorded = program.initialize(params, key)
        piece = _piece(0, state, recorded, plan)
        while _overflowed(piece) and simulation.grow is not None:
            larger, _ = simulation.grow(piece.state, piece.state)
            # What is compiled to advance takes states of any capacity; only new states must be made larger.
            simulation = dataclasses.replace(simulation, init=larger.init, grow=larger.grow)
            program = dataclasses.replace(program, initialize=Program.of(simulation, plan).initialize)
            state, recorded = program.initialize(params, key)
            piece = _piece(0, state, recorded, plan)
        if store:
            store.create()
            store.write(0, piece.state, piece.arrays)
    yield piece
    while not piece.finished:
        start, index = piece.state, piece.index + 1
        state, recorded = program.advance(start, params)
        piece = _piece(index, state, recorded, plan)
        while _overflowed(piece) and simulation.grow is not None:
            larger, start = simulation.grow(piece.state, start)
            simulation = dataclasses.replace(simulation, grow=larger.grow)
            state, recorded = program.advance(start, params)
            piece = _piece(index, state, recorded, plan)
        if store:
            store.write(piece.index, piece.state, piece.arrays)
        yield piece


def final_status(simulation: Simulation, status: np.ndarray) -> np.ndarray:
    """Return the status of a finished run: one that should have converged and did not has used up its steps.

    Args:
        simulation: what ran.
        status: codes at its end.
    """
    if simulation.done is None:
        return status
    return np.where(status == Status.OK, np.int32(Status.MAX_STEPS), status)


def _segment(simulation: Simulation, plan: Plan) -> Callable[[State, Params], tuple[State, Any]]:
    record = frame(simulation, plan.every)

    def run(state: State, params: Params) -> tuple[State, Any]:
        def body(index: jax.Array, carry: tuple[State, Any]) -> tuple[State, Any]:
            state, recorded = carry
            state, one = record(state, params)
            return state, jax.tree.map(lambda stack, leaf: stack.at[index].set(leaf), recorded, one)

        count = plan.frames_per_segment
        shapes = jax.eval_shape(record, state, params)[1]
        empty = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), shapes)
        # The compiler must not see how long the loop is: it unrolls one of a single turn, and then rounds what is
        # recorded otherwise than `trajectory` does.
        return jax.lax.fori_loop(0, jax.lax.optimization_barrier(jnp.int32(count)), body, (state, empty))

    return run


def _overflowed(piece: Piece) -> bool:
    return bool(np.any(piece.status == Status.NEIGHBOR_OVERFLOW))


def _first(simulation: Simulation, state: State, params: Params) -> tuple[State, Any]:
    """Return the state with its own frame, as a stack of one."""
    recorded = {
        "observed": simulation.observe(state, params),
        "diagnosed": simulation.diagnose(state, params),
        "status": status_of(simulation)(state, params),
    }
    return state, jax.tree.map(lambda leaf: leaf[None], recorded)


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
