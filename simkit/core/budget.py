"""Derivatives within a memory budget, as one program or in pieces that are compiled and stored one by one."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.compilation import needed_bytes
from simkit.core.gradient import Mode, is_forward, jitted, state_bytes
from simkit.core.objective import Objective
from simkit.core.rollout import Nesting, nesting_within
from simkit.core.simulation import Arrays, Params

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
