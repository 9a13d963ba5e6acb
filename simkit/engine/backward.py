"""A derivative as work of the loop: the run forward, piece by piece, and then its pieces in reverse order."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.budget import NoRoomError
from simkit.core.compilation import needed_bytes
from simkit.core.dependence import used_leaves
from simkit.core.gradient import chosen_of
from simkit.core.objective import Objective
from simkit.core.pytrees import pytree, size_in_bytes
from simkit.core.rollout import Frames, frames, initial, recorded_frame, width_of
from simkit.core.simulation import Arrays, Params, State
from simkit.core.status import failed
from simkit.engine.driver import Plan, Segment
from simkit.engine.memory import shapes_of
from simkit.storage.files import Layout
from simkit.storage.store import Store, arrays_of_state, state_of_arrays

STATUS, VALUE = "status", "value"


@dataclasses.dataclass(frozen=True)
class Pieces:
    """An objective of a run in equal pieces, and the derivative of each.

    With x_i the state after piece i, y_i its frames and J the objective, a function of all frames,

        x_i, y_i = piece(x_(i-1), p),   a_(i-1), b_i = (a_i, dJ/dy_i) . d(x_i, y_i)/d(x_(i-1), p),
        dJ/dp = (a_0, dJ/dy_0) . d(x_0, y_0)/dp + sum over i of b_i,   a_n = 0

    Frames hold only the arrays on which J depends, and ``"status"``.

    Attributes:
        objective: what to differentiate; its simulation runs a fixed number of steps.
        wrt: paths of the parameters.
        every: steps between frames.
        count: frames of a piece.
        frame: shapes of one frame, ``{"observed.NAME" | "diagnosed.NAME": array}``.
        names: names of the arrays on which the objective depends, see `needed_names`.
    """

    objective: Objective
    wrt: tuple[str, ...]
    every: int
    count: int
    frame: Arrays
    names: tuple[str, ...]

    @property
    def number(self) -> int:
        """Number of pieces."""
        return self.objective.steps // (self.every * self.count)

    def first(self, params: Params, key: jax.Array) -> tuple[State, Arrays]:
        """Return the initial state and its frame, with a frame axis of length 1."""
        simulation = self.objective.simulation
        state = initial(simulation)(params, key)
        frame = recorded_frame(simulation)(state, params)
        return state, self._arrays(jax.tree.map(lambda leaf: leaf[None], frame))

    def piece(self, state: State, params: Params) -> tuple[State, Arrays]:
        """Return the state after a piece that begins with the given state, and its frames."""
        width = width_of((self.count, self.every), size_in_bytes(state), self.objective.memory)
        record = frames(self.objective.simulation, self.every, self.count, width=width)
        state, piece_frames = record(state, params)
        return state, self._arrays(piece_frames)

    def value_and_cotangents(self, arrays: Arrays) -> tuple[jax.Array, Arrays]:
        """Return the objective, and its derivative with respect to all real arrays of the frames.

        Args:
            arrays: frames of the whole run, ``{name: (frames, ...)}``.
        """
        floats = {name: array for name, array in arrays.items() if _is_float(array)}

        def value(floats: Arrays) -> jax.Array:
            known_arrays = arrays | floats
            status = known_arrays.pop(STATUS)
            # Zeros for arrays on which the objective does not depend.
            shapes = {name: (len(status), *leaf.shape) for name, leaf in self.frame.items() if name not in known_arrays}
            others = {name: jnp.zeros(shape, self.frame[name].dtype) for name, shape in shapes.items()}
            return self.objective.of_frames(_frames(known_arrays | others, status))

        return jax.value_and_grad(value)(floats)

    def back(self, state: State, params: Params, cotangent: list[jax.Array], of_frames: Arrays) -> Any:
        """Return the cotangent at the start of a piece, and its contribution to the derivative, ``{path: array}``.

        Args:
            state: state at the start of the piece.
            params: parameters.
            cotangent: derivatives with respect to the real arrays of the state at its end, see `floats_of`.
            of_frames: derivatives with respect to its frames.
        """

        def run(floats: list[jax.Array], chosen: Arrays) -> tuple[list[jax.Array], Arrays]:
            end, arrays = self.piece(with_floats(state, floats), paths.replaced(params, chosen))
            return floats_of(end), {name: arrays[name] for name in of_frames}

        _, pull = jax.vjp(run, floats_of(state), chosen_of(params, self.wrt))
        return pull((cotangent, of_frames))

    def back_to_parameters(
        self, params: Params, key: jax.Array, cotangent: list[jax.Array], of_frames: Arrays
    ) -> Arrays:
        """Return the contribution of the initial state and its frame to the derivative; arguments as for `back`."""

        def run(chosen: Arrays) -> tuple[list[jax.Array], Arrays]:
            state, arrays = self.first(paths.replaced(params, chosen), key)
            return floats_of(state), {name: arrays[name] for name in of_frames}

        return jax.vjp(run, chosen_of(params, self.wrt))[1]((cotangent, of_frames))[0]

    def _arrays(self, frames: Frames) -> Arrays:
        return {name: array for name, array in frames.named.items() if name in self.names} | {STATUS: frames.status}


def needed_names(objective: Objective, frame: Arrays, count: int) -> tuple[str, ...]:
    """Return the names of the arrays of a frame on which an objective depends.

    Args:
        objective: objective of a run of a fixed number of steps.
        frame: shapes of one frame, ``{"observed.NAME" | "diagnosed.NAME": array}``.
        count: number of frames.
    """
    names = sorted(frame)

    def value(status: jax.Array, *leaves: jax.Array) -> jax.Array:
        return objective.of_frames(_frames(dict(zip(names, leaves, strict=True)), status))

    shapes = [jax.ShapeDtypeStruct((count, *frame[name].shape), frame[name].dtype) for name in names]
    used = used_leaves(value, jax.ShapeDtypeStruct((count,), jnp.int32), *shapes)
    return tuple(name for name, is_used in zip(names, used[1:], strict=True) if is_used)


def floats_of(tree: Any) -> list[jax.Array]:
    """Return the leaves of a pytree that are real or complex numbers."""
    return [leaf for leaf in jax.tree.leaves(tree) if _is_float(leaf)]


def with_floats(tree: Any, floats: Sequence[jax.Array]) -> Any:
    """Return a pytree with other numbers.

    Args:
        tree: any.
        floats: as from `floats_of`.
    """
    leaves, structure = jax.tree.flatten(tree)
    numbers = iter(floats)
    return jax.tree.unflatten(structure, [next(numbers) if _is_float(leaf) else leaf for leaf in leaves])


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _frames(named: Arrays, status: jax.Array) -> Frames:
    observed, diagnosed = (
        {name.removeprefix(group): array for name, array in named.items() if name.startswith(group)}
        for group in ("observed.", "diagnosed.")
    )
    return Frames(observed=observed, diagnosed=diagnosed, status=status)


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
        programs: compiled methods of the pieces, by name.
        of_frames: derivatives of the objective with respect to all frames; ``None`` until they are needed.
    """

    pieces: Pieces
    params: Params
    key: jax.Array
    store: Store
    programs: SimpleNamespace
    of_frames: "tuple[jax.Array, Arrays] | None" = None

    @property
    def last(self) -> int:
        """Index of the last segment."""
        return last_segment(self.pieces.number)

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Backward, Segment] | None":
        """Return the last stored segment from which the work can resume, or ``None``."""
        stored = store.restore(jax.eval_shape(self._begin, self.params, self.key)[0], warn)
        return stored and (self, self._segment(*stored))

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
            return {
                name: jax.ShapeDtypeStruct((count, *array.shape[1:]), array.dtype) for name, array in arrays.items()
            }

        pieces = self.pieces
        frame = {name: pieces.frame[name] for name in pieces.names} | {STATUS: jax.ShapeDtypeStruct((), jnp.int32)}
        stacked = {name: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype) for name, leaf in frame.items()}
        frames = first(pieces.number * pieces.count + 1, stacked)
        of_frames = jax.eval_shape(self.programs.value_and_cotangents, frames)[1]
        cotangent = jax.eval_shape(floats_of, self._template)
        # Derivatives with respect to all frames are held while the pieces are differentiated.
        return size_in_bytes(of_frames) + max(
            bytes_of(self.programs.value_and_cotangents, frames) - size_in_bytes(of_frames),
            bytes_of(self.programs.back, self._template, self.params, cotangent, first(pieces.count, of_frames)),
            bytes_of(self.programs.back_to_parameters, self.params, self.key, cotangent, first(1, of_frames)),
        )

    def _begin(self, params: Params, key: jax.Array) -> tuple[Carry, Arrays]:
        state, arrays = self.programs.first(params, key)
        cotangent, derivative = jax.tree.map(jnp.zeros_like, (floats_of(state), chosen_of(params, self.pieces.wrt)))
        return Carry(state=state, cotangent=cotangent, derivative=derivative), arrays | arrays_of_state(state)

    def _segment(self, index: int, carry: Carry, arrays: Mapping[str, Any]) -> Segment:
        kept = {name: np.asarray(array) for name, array in arrays.items()}
        # There is no derivative of a run that fails.
        return Segment(index, carry, kept, finished=index == self.last or bool(failed(kept[STATUS][-1])))

    def _objective(self) -> tuple[jax.Array, Arrays]:
        """Return the objective and its derivatives with respect to the stored frames."""
        names = (*self.pieces.names, STATUS)
        parts = [self._stored(index) for index in range(self.pieces.number + 1)]
        return self.programs.value_and_cotangents(
            {name: jnp.concatenate([part[name] for part in parts]) for name in names}
        )

    def _state(self, index: int) -> State:
        """Return the stored state at the end of a piece."""
        stored = self._stored(index)
        named = {name: array for name, array in stored.items() if name in self._state_layout}
        return state_of_arrays(named, self._template, self.store.path_of(index))

    def _stored(self, index: int) -> dict[str, np.ndarray]:
        frames = 1 if index == 0 else self.pieces.count
        frame = {name: self.pieces.frame[name] for name in self.pieces.names}
        layout = {name: (str(leaf.dtype), (frames, *leaf.shape)) for name, leaf in frame.items()}
        layout |= {STATUS: ("int32", (frames,))} | self._state_layout
        stored = self.store.read_segment(self.store.path_of(index))
        Layout(layout).check(self.store.path_of(index), stored)
        return stored

    @functools.cached_property
    def _template(self) -> State:
        return jax.eval_shape(self.programs.first, self.params, self.key)[0]

    @functools.cached_property
    def _state_layout(self) -> dict[str, tuple[str, tuple[int | str, ...]]]:
        named = jax.eval_shape(arrays_of_state, self._template)
        return {name: (str(leaf.dtype), leaf.shape) for name, leaf in named.items()}


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
    names = ("first", "piece", "value_and_cotangents", "back", "back_to_parameters")
    programs = SimpleNamespace(**{name: jax.jit(getattr(pieces, name)) for name in names})
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
