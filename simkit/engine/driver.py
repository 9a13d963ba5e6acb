"""The host loop: a compiled program of a simulation, its plan, and its run in stored segments."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import rollout
from simkit.core.converge import with_room
from simkit.core.rollout import Frames, initial, recorded_frame
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, stops
from simkit.scenario.scenario import Scenario
from simkit.storage.store import Store

# Enough segments to lose little work in a crash and to show progress, few enough to justify a file for each.
SEGMENTS = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps, frames and segments of a run, fixed by its settings alone, so that equal runs write equal files.

    Attributes:
        steps: number of steps (the maximum, if the simulation converges).
        every: steps between frames; divides ``steps``.
        least_segments: minimum number of segments, if there are as many frames.
        first_steps: number of steps of a run before it was extended, which decides its segments.
    """

    steps: int
    every: int
    least_segments: int = SEGMENTS
    first_steps: int | None = None

    @property
    def frames(self) -> int:
        """Number of frames, without the initial one."""
        return self.steps // self.every

    @property
    def frames_per_segment(self) -> int:
        """The largest divisor of ``frames`` that leaves at least ``least_segments`` segments (else one frame each)."""
        frames = (self.first_steps or self.steps) // self.every
        small = [d for d in range(1, math.isqrt(frames) + 1) if frames % d == 0]
        divisors = [*small, *(frames // d for d in small)]
        return max(d for d in divisors if d <= max(frames // self.least_segments, 1))

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


@dataclasses.dataclass(frozen=True)
class Segment:
    """One finished segment.

    Attributes:
        index: 0 for the first, then 1, 2, ...
        state: state at its end, the initial state of the next segment.
        arrays: arrays to store, including ``"status"``.
        finished: whether this is the last segment.
    """

    index: int
    state: Any
    arrays: dict[str, np.ndarray]
    finished: bool

    @property
    def status(self) -> np.ndarray:
        """Status codes at the end: a scalar, or one per member."""
        return self.arrays["status"][-1]


class Work(Protocol):
    """Work of the loop: one simulation (`simkit.engine.driver`), or the members of a sweep (`simkit.engine.lanes`).

    A segment in which a buffer overflows is computed again with larger buffers, so each method returns, beside its
    segment, the work that computes the next one.
    """

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Work, Segment] | None":
        """Return the last stored segment from which the work can resume, or ``None``."""
        ...

    def begin(self) -> "tuple[Work, Segment]":
        """Return the first segment."""
        ...

    def advance(self, segment: Segment) -> "tuple[Work, Segment]":
        """Return the segment after the given one."""
        ...


def segments_of(work: Work, store: Store | None, warn: Callable[[str], None]) -> Iterator[Segment]:
    """Run work segment by segment, yielding each segment when it is finished and stored.

    The iteration may be stopped at any time; a later call with the same store resumes bit for bit, and first yields
    the last segment stored.

    Args:
        work: work to run.
        store: store of segments and checkpoints; ``None`` keeps nothing on disk.
        warn: called with one line when a damaged file is skipped.
    """
    restored = work.restore(store, warn) if store else None
    work, segment = restored or work.begin()
    if store and not restored:
        store.create()
        store.write(segment.index, segment.state, segment.arrays)
    yield segment
    while not segment.finished:
        work, segment = work.advance(segment)
        if store:
            store.write(segment.index, segment.state, segment.arrays)
        yield segment


def run_all(
    work: Work, store: Store | None, warn: Callable[[str], None], report: Callable[[Segment], None]
) -> tuple[list[dict[str, np.ndarray]], Segment]:
    """Run work to its end; return the arrays of all segments, including those stored earlier, and the last segment.

    Args:
        work: work to run.
        store: as for `segments_of`.
        warn: as for `segments_of`.
        report: called with each segment.
    """
    kept, last = [], None
    for last in segments_of(work, store, warn):
        report(last)
        if store is None:
            kept.append(last.arrays)
    assert last is not None  # there is always a first segment
    return store.read() if store else kept, last


@dataclasses.dataclass(frozen=True)
class Program:
    """A simulation compiled for a plan, reusable for other values and keys of the same shapes.

    Attributes:
        simulation: the simulation.
        start: jitted ``(params, key) -> state``.
        record: jitted ``(state, params, count) -> (state, Frames)``, that many frames of a segment, or the frame of the
            state itself if it is 0; accepts states of any buffer capacity. One program for both, since what a frame
            observes takes as long to compile as a step.
        count: frames of a segment.
    """

    simulation: Simulation
    start: Any
    record: Any
    count: int

    @classmethod
    def of(cls, simulation: Simulation, plan: Plan, shardings: Any = None) -> "Program":
        """Return the program of a simulation, kept with it; each part is compiled when it is first called.

        Args:
            simulation: the simulation to run.
            plan: steps and frames.
            shardings: of a state and of its frames; ``None`` on one device.
        """

        def made() -> Program:
            alone = simulation.unshared()
            layout = {"out_shardings": shardings[0]} if shardings else {}
            recorded = {"out_shardings": shardings} if shardings else {}
            start, record = jax.jit(_beginning(alone), **layout), jax.jit(_segment_function(alone, plan), **recorded)
            return cls(alone, start, record, plan.frames_per_segment)

        return dataclasses.replace(simulation.programs.cached(("run", plan, shardings), made), simulation=simulation)

    def initialize(self, params: Params, key: jax.Array) -> tuple[State, Frames]:
        """Return the initial state, and its frame as the first of the frames of a segment."""
        state = self.start(params, key)
        return self.record(state, params, np.int32(0))

    def advance(self, state: State, params: Params) -> tuple[State, Frames]:
        """Return the state after a segment, and its frames."""
        return self.record(state, params, np.int32(self.count))

    def with_grown_buffers(
        self, call: "Callable[[Program, State], tuple[State, Frames]]", start: State = None
    ) -> "tuple[Program, State, dict[str, np.ndarray]]":
        """Call a function, and repeat the call with larger buffers while one overflows.

        Args:
            call: ``(program, start) -> (state, frames)``.
            start: initial state of the call; ``None`` if the call makes its own.

        Returns:
            The program with buffers of the final size, the state, and its frames.
        """

        def attempt(simulation: Simulation, start: State) -> tuple[State, np.ndarray, tuple[Program, State, Frames]]:
            program = self if simulation is self.simulation else self._of_size(simulation)
            state, recorded = call(program, start)
            status = np.asarray(recorded.status)
            kept = 1 if start is None else _kept(status)
            return state, status[:kept], (program, state, recorded)

        program, state, recorded = with_room(self.simulation, attempt, start)
        arrays = _arrays(recorded)
        return program, state, arrays if start is not None else {name: array[:1] for name, array in arrays.items()}

    def with_buffers_of(self, state: State) -> "Program":
        """Return the program whose initial state has buffers as large as those of a state."""
        return self._of_size(self.simulation.with_buffers_of(state))

    def _of_size(self, simulation: Simulation) -> "Program":
        start = simulation.programs.cached("start", lambda: jax.jit(_beginning(simulation.unshared())))
        return dataclasses.replace(self, simulation=simulation, start=start)


@dataclasses.dataclass(frozen=True)
class Drive:
    """One simulation as `simkit.engine.driver.Work`; its first segment is the initial frame.

    A segment in which a buffer overflows is repeated with a larger buffer, so that no result with a missing entry is
    stored.

    Attributes:
        program: program of the simulation.
        params: parameters of the simulation.
        key: random key (one per member for an ensemble).
        plan: steps and frames.
    """

    program: Program
    params: Params
    key: jax.Array
    plan: Plan

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Drive, Segment] | None":
        """Return the last stored segment from which the run can resume, or ``None``."""
        template = jax.eval_shape(self.program.start, self.params, self.key)
        # Growing buffers have the sizes in the file, provided that a segment can be traced with them.
        growing = self.program.simulation.sized_like is not None
        advance = functools.partial(self.program.advance, params=self.params) if growing else None
        restored = store.restore(template, warn, advance=advance)
        return restored and (self, self._as_segment(*restored))

    def begin(self) -> "tuple[Drive, Segment]":
        """Return the initial frame."""
        program, state, arrays = self.program.with_grown_buffers(
            lambda program, _: program.initialize(self.params, self.key)
        )
        return dataclasses.replace(self, program=program), self._as_segment(0, state, arrays)

    def advance(self, segment: Segment) -> "tuple[Drive, Segment]":
        """Return the next segment."""
        program, state, arrays = self.program.with_grown_buffers(
            lambda program, start: program.advance(start, self.params), segment.state
        )
        return dataclasses.replace(self, program=program), self._as_segment(segment.index + 1, state, arrays)

    def _as_segment(self, index: int, state: State, arrays: dict[str, np.ndarray]) -> Segment:
        kept = _kept(arrays["status"])
        arrays = {name: array[:kept] for name, array in arrays.items()}
        stopped = bool(np.all(stops(arrays["status"][-1])))
        return Segment(index, state, arrays, finished=stopped or index >= self.plan.segments)


def final_status(simulation: Simulation, status: np.ndarray) -> np.ndarray:
    """Return the status of a finished run: ``MAX_STEPS`` if it should have converged and did not.

    Args:
        simulation: the simulation that was run.
        status: status codes at its end.
    """
    if not simulation.converges:
        return status
    return np.where(stops(status), status, np.int32(Status.MAX_STEPS))


def _segment_function(simulation: Simulation, plan: Plan) -> Callable[[State, Params, jax.Array], tuple[State, Frames]]:
    step, record = rollout.segment(simulation, plan.every), recorded_frame(simulation)

    def segment(state: State, params: Params, count: jax.Array) -> tuple[State, Frames]:
        def body(index: jax.Array, carry: tuple[State, Frames]) -> tuple[State, Frames]:
            state, recorded = carry
            state = jax.lax.cond(count > 0, step, lambda state, _: state, state, params)
            frame = record(state, params)
            return state, jax.tree.map(lambda stack, leaf: stack.at[index].set(leaf), recorded, frame)

        shapes = jax.eval_shape(record, state, params)
        most = plan.frames_per_segment
        empty = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)
        # The compiler would unroll a loop of one iteration, were its length no argument, and round recorded values
        # otherwise than in `trajectory`.
        return jax.lax.fori_loop(0, jnp.maximum(count, 1), body, (state, empty))

    return segment


def _beginning(simulation: Simulation) -> Callable[[Params, jax.Array], State]:
    def beginning(params: Params, key: jax.Array) -> State:
        return initial(simulation)(params, key)

    return beginning


def _arrays(recorded: Frames) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in (recorded.named | {"status": recorded.status}).items()}


def _kept(status: np.ndarray) -> int:
    """Return the number of frames up to the one at which every member has stopped; later ones only repeat it."""
    ended = np.all(stops(status).reshape(len(status), -1), axis=1)
    return int(np.argmax(ended)) + 1 if ended.any() else len(status)
