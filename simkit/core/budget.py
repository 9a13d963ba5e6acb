"""Derivatives within a memory budget, as one program or in pieces that are compiled and stored one by one."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.compilation import needed_bytes
from simkit.core.dependence import used_leaves
from simkit.core.gradient import Mode, is_forward, jitted, state_bytes
from simkit.core.objective import Objective
from simkit.core.pytrees import size_in_bytes
from simkit.core.rollout import Frames, Nesting, frames, initial, nesting_within, width_of
from simkit.core.simulation import Arrays, Params, State
from simkit.core.status import status_of

# Compilations tried; each reserves the bytes that the previous program needed besides its states.
ATTEMPTS = 4


class NoRoomError(Exception):
    """No nesting fits into memory.

    Attributes:
        needed: smallest memory of those tried, in bytes.
        holds_states: whether states of the run are part of it, as in reverse mode.
    """

    def __init__(self, needed: int, *, holds_states: bool = True) -> None:
        """Store the memory and whether it includes states."""
        super().__init__(f"the derivative needs {needed} bytes")
        self.needed, self.holds_states = needed, holds_states


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A derivative compiled to fit in memory.

    Attributes:
        call: ``(params, key) -> (value, status, {path: derivative})``.
        needed: memory of one call in bytes, as reported by the compiler.
        nesting: rematerialization of the steps in reverse mode; ``None`` for a derivative that stores no states
            (forward mode, or the implicit derivative of an equilibrium).
        state: size in bytes of a state, of all members together.
    """

    call: Any
    needed: int
    nesting: Nesting | None
    state: int

    def __call__(self, params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array, Arrays]:
        """Return value, status and derivative."""
        return self.call(params, key)


def fitted(
    objective: Objective, wrt: str | Sequence[str], mode: Mode, params: Params, key: jax.Array, *, memory: int
) -> Fitted:
    """Return `simkit.core.gradient.jitted`, compiled for one device with the fewest repeated steps that fit in memory.

    A nesting is compiled and its memory read from the compiler; if it exceeds the limit, the next one gets fewer bytes
    for its states.

    Args:
        objective: what to differentiate.
        wrt: as for `simkit.core.gradient.with_derivative`.
        mode: likewise.
        params: parameters; only their shapes matter.
        key: random key, or keys of members; only its shape matters.
        memory: upper limit in bytes for all arrays together.

    Raises:
        NoRoomError: if no nesting fits.
    """
    members, state = math.prod(jnp.shape(key)), state_bytes(objective, key)
    holds_states = not objective.converges and not is_forward(objective, wrt, mode, params, key)
    states, tried, least = memory, set(), None
    for _ in range(ATTEMPTS):
        nesting = nesting_within(objective.loops, state, max(states, 0)) if holds_states else None
        if nesting in tried:
            break
        tried.add(nesting)
        chosen = dataclasses.replace(objective, memory=max(states, 0) // members) if holds_states else objective
        call = jitted(chosen, wrt, mode, params, key).lower(params, key).compile()
        needed = needed_bytes(call)
        if needed <= memory:
            return Fitted(call, needed, nesting, state)
        least = needed if least is None else min(least, needed)
        # The memory besides states stays the same with another nesting.
        states = memory - (needed - (nesting.states * state if nesting else 0))
    raise NoRoomError(least or 0, holds_states=holds_states)


STATUS = "status"


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
        observed, diagnosed = simulation.observe(state, params), simulation.diagnose(state, params)
        frame = Frames(observed=observed, diagnosed=diagnosed, status=status_of(simulation)(state, params))
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

        _, pull = jax.vjp(run, floats_of(state), self.chosen(params))
        return pull((cotangent, of_frames))

    def back_to_parameters(
        self, params: Params, key: jax.Array, cotangent: list[jax.Array], of_frames: Arrays
    ) -> Arrays:
        """Return the contribution of the initial state and its frame to the derivative; arguments as for `back`."""

        def run(chosen: Arrays) -> tuple[list[jax.Array], Arrays]:
            state, arrays = self.first(paths.replaced(params, chosen), key)
            return floats_of(state), {name: arrays[name] for name in of_frames}

        return jax.vjp(run, self.chosen(params))[1]((cotangent, of_frames))[0]

    def chosen(self, params: Params) -> Arrays:
        """Return the parameters to differentiate by, ``{path: array}``."""
        leaves = paths.leaves(params)
        return {name: leaves[name] for name in self.wrt}

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
