"""Repetition of a run with larger buffers after one overflowed its capacity, on the host."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.core.buffers import enlarged, overflow_of, sized_like
from simkit.core.converge import Converged, converge
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status


def with_room[T](
    simulation: Simulation,
    attempt: Callable[[Simulation, State], tuple[State, jax.Array | np.ndarray, T]],
    start: State = None,
) -> T:
    """Return what an attempt comes to, made again with larger buffers as long as one overflows.

    Compiled code has buffers of fixed sizes, so a run can only stop with the status ``BUFFER_OVERFLOW``.

    Args:
        simulation: what runs; without ``sized_like`` there is one attempt.
        attempt: ``(simulation, start) -> (state, status, result)``: the state at its end, and any statuses on its way.
        start: the state that it goes on from, if there is one; it has not overflowed.
    """
    while True:
        state, status, result = attempt(simulation, start)
        is_short = simulation.sized_like is not None and bool(np.any(np.asarray(status) == Status.BUFFER_OVERFLOW))
        # A status of that name which no buffer explains cannot be helped.
        if not is_short or not bool(np.any(overflow_of(state))):
            return result
        example = enlarged(state)
        simulation = simulation.with_buffers_of(example)
        start = start if start is None else sized_like(start, example)


def converge_with_growth(
    simulation: Simulation, max_steps: int
) -> Callable[[Params, jax.Array], tuple[Simulation, Converged]]:
    """Return ``(params, key) -> (simulation, Converged)`` that converges from the initial state, with room enough.

    The simulation returned has the buffers that it took: use it to converge again nearby, or to differentiate.

    Args:
        simulation: one that converges, with an ``equilibrium``.
        max_steps: largest number of steps.
    """

    def run(params: Params, key: jax.Array) -> tuple[Simulation, Converged]:
        def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, tuple[Simulation, Converged]]:
            result = jax.jit(_from_start(simulation, max_steps))(params, key)
            return result.state, result.status, (simulation, result)

        return with_room(simulation, attempt)

    return run


def _from_start(simulation: Simulation, max_steps: int) -> Callable[[Params, jax.Array], Converged]:
    return lambda params, key: converge(simulation, max_steps)(simulation.init(params, key), params)
