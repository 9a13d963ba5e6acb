"""Runs on the host that begin again with more room where an array overflowed its capacity."""

from collections.abc import Callable

import jax

from simkit.core.converge import Converged, converge
from simkit.core.simulation import Params, Simulation
from simkit.core.status import Status


def converge_with_growth(
    simulation: Simulation, max_steps: int
) -> Callable[[Params, jax.Array], tuple[Simulation, Converged]]:
    """Return ``(params, key) -> (simulation, Converged)`` that converges from the initial state, with room enough.

    Compiled code has arrays of fixed sizes, so `simkit.core.converge.converge` can only stop with the status
    ``NEIGHBOR_OVERFLOW``. This begins again with a larger capacity until it does not. The simulation returned has
    that capacity: use it to converge again nearby, or to differentiate.

    Args:
        simulation: one that converges, with an ``equilibrium``; without ``grow`` it is run once.
        max_steps: largest number of steps.
    """

    def run(params: Params, key: jax.Array) -> tuple[Simulation, Converged]:
        larger = simulation
        while True:
            result = jax.jit(_from_start(larger, max_steps))(params, key)
            if larger.grow is None or not bool((result.status == Status.NEIGHBOR_OVERFLOW).any()):
                return larger, result
            larger, _ = larger.grow(result.state, result.state)

    return run


def _from_start(simulation: Simulation, max_steps: int) -> Callable[[Params, jax.Array], Converged]:
    return lambda params, key: converge(simulation, max_steps)(simulation.init(params, key), params)
