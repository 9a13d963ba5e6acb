"""Compiled program of a simulation for a plan, and its execution from start to end."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.growth import with_room
from simkit.core.rollout import Frames, frame, initial
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of, stops
from simkit.engine.loop import Piece
from simkit.engine.plan import Plan
from simkit.storage.store import Store


@dataclasses.dataclass(frozen=True)
class Program:
    """A simulation compiled for a plan, to be used again for other values and keys of the same shapes.

    Attributes:
        simulation: what it runs.
        initialize: jitted ``(params, key) -> (state, first frame)``.
        advance: jitted ``(state, params) -> (state, Frames)`` of one segment; takes states of any capacity.
    """

    simulation: Simulation
    initialize: Any
    advance: Any

    @classmethod
    def of(cls, simulation: Simulation, plan: Plan, jit: Callable[..., Any] = jax.jit) -> "Program":
        """Return the program of a simulation; each part is compiled when it is first called.

        Args:
            simulation: what it runs.
            plan: steps and frames.
            jit: compiles a function that returns a state and its frames.
        """
        return cls(simulation, jit(_beginning(simulation)), jit(_segment(simulation, plan)))

    def roomy(
        self, call: "Callable[[Program, State], tuple[State, Frames]]", start: State = None
    ) -> "tuple[Program, State, dict[str, np.ndarray]]":
        """Return what a call returns, the call repeated with larger buffers as long as one overflows.

        Args:
            call: ``(program, start) -> (state, frames)``.
            start: the state that it goes on from, if there is one.

        Returns:
            The program that makes buffers of that size, the state, and its frames.
        """

        def attempt(simulation: Simulation, start: State) -> tuple[State, np.ndarray, tuple[Program, State, Frames]]:
            program = self if simulation is self.simulation else self._of_size(simulation)
            state, recorded = call(program, start)
            status = np.asarray(recorded.status)
            return state, status[: _kept(status)], (program, state, recorded)

        program, state, recorded = with_room(self.simulation, attempt, start)
        return program, state, _arrays(recorded)

    def with_buffers_of(self, state: State) -> "Program":
        """Return the program that begins with buffers as large as those of a state."""
        return self._of_size(self.simulation.with_buffers_of(state))

    def _of_size(self, simulation: Simulation) -> "Program":
        return dataclasses.replace(self, simulation=simulation, initialize=jax.jit(_beginning(simulation)))


@dataclasses.dataclass(frozen=True)
class Drive:
    """One simulation as `simkit.engine.loop.Work`; its first piece is the initial frame.

    A segment in which a buffer overflows is run again from its start with a larger one, so that nothing computed with
    a missing entry is ever stored.

    Attributes:
        program: of the simulation.
        params: its parameters.
        key: random key (one per member for an ensemble).
        plan: steps and frames.
    """

    program: Program
    params: Params
    key: jax.Array
    plan: Plan

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Drive, Piece] | None":
        """Return the last stored piece from which the run can go on, if there is one."""
        template = jax.eval_shape(self.program.initialize, self.params, self.key)[0]
        # The sizes of buffers that grow are those of the file, if a segment can be traced with them.
        growing = self.program.simulation.sized_like is not None
        advance = functools.partial(self.program.advance, params=self.params) if growing else None
        found = store.restore(template, warn, advance=advance)
        return found and (self, self._piece(*found))

    def begin(self) -> "tuple[Drive, Piece]":
        """Return the initial frame."""
        program, state, arrays = self.program.roomy(lambda program, _: program.initialize(self.params, self.key))
        return dataclasses.replace(self, program=program), self._piece(0, state, arrays)

    def advance(self, piece: Piece) -> "tuple[Drive, Piece]":
        """Return the next segment."""
        program, state, arrays = self.program.roomy(
            lambda program, start: program.advance(start, self.params), piece.state
        )
        return dataclasses.replace(self, program=program), self._piece(piece.index + 1, state, arrays)

    def _piece(self, index: int, state: State, arrays: dict[str, np.ndarray]) -> Piece:
        kept = _kept(arrays["status"])
        arrays = {name: array[:kept] for name, array in arrays.items()}
        stopped = bool(np.all(stops(arrays["status"][-1])))
        return Piece(index, state, arrays, finished=stopped or index >= self.plan.segments)


def final_status(simulation: Simulation, status: np.ndarray) -> np.ndarray:
    """Return the status of a finished run: one that should have converged and did not has used up its steps.

    Args:
        simulation: what ran.
        status: codes at its end.
    """
    if not simulation.converges:
        return status
    return np.where(stops(status), status, np.int32(Status.MAX_STEPS))


def _segment(simulation: Simulation, plan: Plan) -> Callable[[State, Params], tuple[State, Frames]]:
    record = frame(simulation, plan.every)

    def segment(state: State, params: Params) -> tuple[State, Frames]:
        def body(index: jax.Array, carry: tuple[State, Frames]) -> tuple[State, Frames]:
            state, recorded = carry
            state, one = record(state, params)
            return state, jax.tree.map(lambda stack, leaf: stack.at[index].set(leaf), recorded, one)

        count = plan.frames_per_segment
        shapes = jax.eval_shape(record, state, params)[1]
        empty = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), shapes)
        # The compiler must not see how long the loop is: it unrolls one of a single turn, and then rounds what is
        # recorded otherwise than `trajectory` does.
        return jax.lax.fori_loop(0, computed_once(jnp.int32(count)), body, (state, empty))

    return segment


def _beginning(simulation: Simulation) -> Callable[[Params, jax.Array], tuple[State, Frames]]:
    """Return ``(params, key) -> (state, Frames)``: the initial state with its own frame, as a stack of one."""

    def beginning(params: Params, key: jax.Array) -> tuple[State, Frames]:
        state = initial(simulation)(params, key)
        recorded = Frames(
            observed=simulation.observe(state, params),
            diagnosed=simulation.diagnose(state, params),
            status=status_of(simulation)(state, params),
        )
        return state, jax.tree.map(lambda leaf: leaf[None], recorded)

    return beginning


def _arrays(recorded: Frames) -> dict[str, np.ndarray]:
    groups = {"observed": recorded.observed, "diagnosed": recorded.diagnosed}
    named = {f"{group}.{name}": array for group, arrays in groups.items() for name, array in arrays.items()}
    return {name: np.asarray(array) for name, array in (named | {"status": recorded.status}).items()}


def _kept(status: np.ndarray) -> int:
    """Return how many frames say something: once every member has stopped, others would only repeat the last one."""
    ended = np.all(stops(status).reshape(len(status), -1), axis=1)
    return int(np.argmax(ended)) + 1 if ended.any() else len(status)
