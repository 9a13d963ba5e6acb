"""Derivatives within a memory budget: states that fit are stored, the others are recomputed."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from simkit.core.compilation import needed_bytes
from simkit.core.gradient import Mode, is_forward, jitted
from simkit.core.objective import Objective
from simkit.core.pytree import size_in_bytes
from simkit.core.rematerialization import Nesting, nesting_within
from simkit.core.simulation import Arrays, Params

# Each attempt gives what the last one took too much to the arrays that are no states.
ATTEMPTS = 4


class NoRoomError(Exception):
    """No nesting fits; ``needed`` is the memory of the one that takes least, in bytes."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"the derivative needs {needed} bytes")
        self.needed = needed


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A derivative compiled to fit in memory.

    Attributes:
        call: ``(params, key) -> (value, status, {path: derivative})``.
        needed: memory that it takes, in bytes, as the compiler reports it.
        nesting: how reverse mode cuts the steps; ``None`` for a derivative that holds no states: forward mode, or that
            of an equilibrium.
        state: size of a state, in bytes.
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

    The compiler is asked what a nesting takes; if that is too much, the states get less.

    Args:
        objective: what to differentiate.
        wrt: as for `simkit.core.gradient.with_derivative`.
        mode: likewise.
        params: of which only the shapes count.
        key: likewise.
        memory: most bytes, of all arrays together.

    Raises:
        NoRoomError: if none fits.
    """
    state = size_in_bytes(jax.eval_shape(objective.simulation.init, params, key))
    holds_states = not objective.converges and not is_forward(objective, wrt, mode, params, key)
    states, tried, least = memory, set(), None
    for _ in range(ATTEMPTS):
        nesting = nesting_within(objective.loops, state, max(states, 0)) if holds_states else None
        if nesting in tried:
            break
        tried.add(nesting)
        chosen = dataclasses.replace(objective, memory=max(states, 0)) if holds_states else objective
        call = jitted(chosen, wrt, mode, params, key).lower(params, key).compile()
        needed = needed_bytes(call)
        if needed <= memory:
            return Fitted(call, needed, nesting, state)
        least = needed if least is None else min(least, needed)
        # What is no state stays; another nesting has only the rest.
        states = memory - (needed - (nesting.states * state if nesting else 0))
    raise NoRoomError(least or 0)
