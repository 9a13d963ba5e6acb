"""Repetition of a run with larger buffers after an overflow, on the host."""

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
    """Return the result of an attempt, repeated with larger buffers as long as one overflows.

    Buffers of compiled code have fixed sizes, so a run can only stop with the status ``BUFFER_OVERFLOW``.

    Args:
        simulation: the simulation; without ``sized_like`` there is one attempt.
        attempt: ``(simulation, start) -> (state, status, result)``: the last state, and the status codes of the run, of
            any shape.
        start: state from which the attempt continues, without overflow; ``None`` if it begins by ``init``.
    """
    while True:
        state, status, result = attempt(simulation, start)
        can_grow = simulation.sized_like is not None and bool(np.any(np.asarray(status) == Status.BUFFER_OVERFLOW))
        # The status may come from the simulation itself, without an overflowed buffer that could be enlarged.
        if not can_grow or not bool(np.any(overflow_of(state))):
            return result
        example = enlarged(state)
        simulation = simulation.with_buffers_of(example)
        start = start if start is None else sized_like(start, example)


def converge_with_growth(
    simulation: Simulation, max_steps: int
) -> Callable[[Params, jax.Array], tuple[Simulation, Converged]]:
    """Return ``(params, key) -> (simulation, Converged)`` that converges from the initial state, enlarging buffers.

    The returned simulation has buffers of sufficient size: use it to converge again nearby, or to differentiate.

    Args:
        simulation: one that converges, with an ``equilibrium``.
        max_steps: largest number of steps.
    """

    def run(params: Params, key: jax.Array) -> tuple[Simulation, Converged]:
        def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, tuple[Simulation, Converged]]:
            result = simulation.programs.found(
                ("converge", max_steps), lambda: jax.jit(_converge_from_init(simulation.unshared(), max_steps))
            )(params, key)
            return result.state, result.status, (simulation, result)

        return with_room(simulation, attempt)

    return run


def _converge_from_init(simulation: Simulation, max_steps: int) -> Callable[[Params, jax.Array], Converged]:
    return lambda params, key: converge(simulation, max_steps)(simulation.init(params, key), params)
