"""A derivative as work of the loop: the run forward, piece by piece, and then its pieces in reverse order."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.budget import STATUS, NoRoomError, Pieces, floats_of, needed_names
from simkit.core.compilation import needed_bytes
from simkit.core.objective import Objective
from simkit.core.pytrees import pytree, size_in_bytes
from simkit.core.simulation import Arrays, Params, State
from simkit.core.status import failed
from simkit.engine.driver import Plan, Segment
from simkit.engine.memory import shapes_of
from simkit.storage.files import Layout
from simkit.storage.store import Store, arrays_of_state, state_of_arrays

VALUE = "value"


@pytree
class Carry:
    """What passes from one segment to the next.

    Attributes:
        state: state at the end of the last piece that was run.
        cotangent: derivatives of the objective with respect to the real arrays of a state; zero on the way forward.
        derivative: derivative summed so far, ``{path: array}``.
    """

    state: State
    cotangent: list[jax.Array]
    derivative: Arrays


@dataclasses.dataclass(frozen=True)
class Backward:
    """A derivative in reverse mode as `simkit.engine.driver.Work`, with the states between its pieces on disk.

    Of n pieces, segment 0 is the initial state, segments 1 to n run the pieces forward, segments n + 1 to 2 n
    differentiate them, the last piece first, and segment 2 n + 1 differentiates the initial state.

    Attributes:
        pieces: the pieces.
        params: parameters.
        key: random key of the initial state.
        store: store of the segments.
        programs: compiled functions, see `backward`.
        of_frames: derivatives of the objective with respect to all frames; ``None`` until they are needed.
    """

    pieces: Pieces
    params: Params
    key: jax.Array
    store: Store
    programs: "Programs"
    of_frames: "tuple[jax.Array, Arrays] | None" = None

    @property
    def last(self) -> int:
        """Index of the last segment."""
        return last_segment(self.pieces.number)

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Backward, Segment] | None":
        """Return the last stored segment from which the work can resume, or ``None``."""
        found = store.restore(jax.eval_shape(self._begin, self.params, self.key)[0], warn)
        return found and (self, self._segment(*found))

    def begin(self) -> "tuple[Backward, Segment]":
        """Return the initial state and its frame."""
        return self, self._segment(0, *self._begin(self.params, self.key))

    def advance(self, segment: Segment) -> "tuple[Backward, Segment]":
        """Return the next segment: a piece forward, or the derivative of one."""
        index, carry = segment.index + 1, segment.state
        number = self.pieces.number
        if index <= number:
            state, arrays = self.programs.piece(carry.state, self.params)
            return self, self._segment(index, dataclasses.replace(carry, state=state), arrays | arrays_of_state(state))
        work = self if self.of_frames else dataclasses.replace(self, of_frames=self._objective())
        assert work.of_frames is not None  # it has just been computed
        value, of_frames = work.of_frames
        status = {STATUS: segment.arrays[STATUS][-1:]}
        if index < self.last:
            piece = 2 * number - index  # 0 for the first
            frames = slice(1 + piece * self.pieces.count, 1 + (piece + 1) * self.pieces.count)
            cotangent, added = self.programs.back(
                self._state(piece), self.params, carry.cotangent, {name: a[frames] for name, a in of_frames.items()}
            )
            return work, self._segment(index, _summed(carry, cotangent, added), status)
        frame = {name: array[:1] for name, array in of_frames.items()}
        added = self.programs.back_to_parameters(self.params, self.key, carry.cotangent, frame)
        return work, self._segment(index, _summed(carry, carry.cotangent, added), status | {VALUE: value})

    def needed(self) -> int:
        """Return the memory of the derivative in bytes, as the compiler reports it for the largest program."""

        def bytes_of(program: Any, *shapes: Any) -> int:
            return needed_bytes(program.lower(*shapes).compile())

        def first(count: int, arrays: Mapping[str, Any]) -> dict[str, Any]:
            return {name: jax.ShapeDtypeStruct((count, *one.shape[1:]), one.dtype) for name, one in arrays.items()}

        pieces = self.pieces
        frame = {name: pieces.frame[name] for name in pieces.names} | {STATUS: jax.ShapeDtypeStruct((), jnp.int32)}
        stacked = {name: jax.ShapeDtypeStruct((1, *one.shape), one.dtype) for name, one in frame.items()}
        frames = first(pieces.number * pieces.count + 1, stacked)
        of_frames = jax.eval_shape(self.programs.value, frames)[1]
        cotangent = jax.eval_shape(floats_of, self._template)
        # Derivatives with respect to all frames are held while the pieces are differentiated.
        return size_in_bytes(of_frames) + max(
            bytes_of(self.programs.value, frames) - size_in_bytes(of_frames),
            bytes_of(self.programs.back, self._template, self.params, cotangent, first(pieces.count, of_frames)),
            bytes_of(self.programs.back_to_parameters, self.params, self.key, cotangent, first(1, of_frames)),
        )

    def _begin(self, params: Params, key: jax.Array) -> tuple[Carry, Arrays]:
        state, arrays = self.programs.first(params, key)
        cotangent, derivative = jax.tree.map(jnp.zeros_like, (floats_of(state), self.pieces.chosen(params)))
        return Carry(state=state, cotangent=cotangent, derivative=derivative), arrays | arrays_of_state(state)

    def _segment(self, index: int, carry: Carry, arrays: Mapping[str, Any]) -> Segment:
        kept = {name: np.asarray(array) for name, array in arrays.items()}
        # There is no derivative of a run that fails.
        return Segment(index, carry, kept, finished=index == self.last or bool(failed(kept[STATUS][-1])))

    def _objective(self) -> tuple[jax.Array, Arrays]:
        """Return the objective and its derivatives with respect to the stored frames."""
        names = (*self.pieces.names, STATUS)
        parts = [self._stored(index) for index in range(self.pieces.number + 1)]
        return self.programs.value({name: jnp.concatenate([part[name] for part in parts]) for name in names})

    def _state(self, index: int) -> State:
        """Return the stored state at the end of a piece."""
        found = self._stored(index)
        named = {name: array for name, array in found.items() if name in self._state_layout}
        return state_of_arrays(named, self._template, self.store.path_of(index))

    def _stored(self, index: int) -> dict[str, np.ndarray]:
        frames = 1 if index == 0 else self.pieces.count
        frame = {name: self.pieces.frame[name] for name in self.pieces.names}
        layout = {name: (str(one.dtype), (frames, *one.shape)) for name, one in frame.items()}
        layout |= {STATUS: ("int32", (frames,))} | self._state_layout
        found = self.store.read_segment(self.store.path_of(index))
        Layout(layout).check(self.store.path_of(index), found)
        return found

    @functools.cached_property
    def _template(self) -> State:
        return jax.eval_shape(self.programs.first, self.params, self.key)[0]

    @functools.cached_property
    def _state_layout(self) -> dict[str, tuple[str, tuple[int | str, ...]]]:
        named = jax.eval_shape(arrays_of_state, self._template)
        return {name: (str(leaf.dtype), leaf.shape) for name, leaf in named.items()}


@dataclasses.dataclass(frozen=True)
class Programs:
    """Compiled functions of a derivative in pieces, see `simkit.core.budget.Pieces`."""

    first: Any
    piece: Any
    value: Any
    back: Any
    back_to_parameters: Any


def backward(
    objective: Objective,
    wrt: Sequence[str],
    params: Params,
    key: jax.Array,
    store: Store,
    least: int,
) -> Backward:
    """Return the derivative of an objective as work of the loop.

    Args:
        objective: what to differentiate; its simulation runs a fixed number of steps, and its buffers do not grow.
        wrt: paths of the parameters.
        params: parameters.
        key: random key of the initial state.
        store: store of the segments.
        least: least number of pieces, if the run has as many frames or steps.
    """
    plan = plan_of_pieces(objective, least)
    frame = shapes_of(objective.simulation)[1]
    names = needed_names(objective, frame, plan.frames + 1)
    pieces = Pieces(objective, tuple(wrt), plan.every, plan.frames_per_segment, frame, names)
    programs = Programs(
        first=jax.jit(pieces.first),
        piece=jax.jit(pieces.piece),
        value=jax.jit(pieces.value_and_cotangents),
        back=jax.jit(pieces.back),
        back_to_parameters=jax.jit(pieces.back_to_parameters),
    )
    return Backward(pieces, params, key, store, programs)


def number_within(
    objective: Objective, wrt: Sequence[str], params: Params, key: jax.Array, memory: int, least: int
) -> tuple[int, int]:
    """Return the smallest number of pieces whose derivative fits in memory, and its memory in bytes.

    The number is doubled until the derivative fits.

    Args:
        objective: as for `backward`.
        wrt: likewise.
        params: likewise.
        key: likewise.
        memory: upper limit in bytes for all arrays together.
        least: least number of pieces, if the run has as many frames or steps.

    Raises:
        NoRoomError: if no number fits.
    """
    smallest: tuple[int, int] | None = None
    while True:
        work = backward(objective, wrt, params, key, Store(Path()), least)  # only compiled
        number, needed = work.pieces.number, work.needed()
        if needed <= memory:
            return number, needed
        # Frames that the host holds outweigh shorter pieces at last.
        if smallest is not None and (number == smallest[0] or needed >= smallest[1]):
            raise NoRoomError(smallest[1])
        smallest, least = (number, needed), 2 * max(least, number)


def plan_of_pieces(objective: Objective, least: int) -> Plan:
    """Return steps, frames and pieces of a derivative; arguments as for `backward`."""
    every = objective.every
    if objective.uses_last_only:
        # No frames are needed before the last, so pieces need not consist of whole frames.
        every = Plan(objective.steps, 1, least).frames_per_segment
    return Plan(objective.steps, every, least)


def last_segment(number: int) -> int:
    """Return the index of the last segment of a derivative in a number of pieces."""
    return 2 * number + 1


def number_of_pieces(last: int) -> int:
    """Return the number of pieces of a derivative from the index of its last segment."""
    return (last - 1) // 2


def _summed(carry: Carry, cotangent: list[jax.Array], added: Arrays) -> Carry:
    derivative = jax.tree.map(jnp.add, carry.derivative, added)
    return dataclasses.replace(carry, cotangent=cotangent, derivative=derivative)
