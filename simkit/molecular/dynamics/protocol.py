"""Interface of a method of molecular dynamics: positions and velocities advanced by one time step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from simkit.core.pytree import pytree
from simkit.core.simulation import Params


@pytree
class DynamicsState:
    """Particles on their way.

    Attributes:
        iteration: int32, time steps since the start.
        position: length, (N, d); never wrapped into the cell, so that paths can be followed.
        velocity: length / time, (N, d).
        force: at the position, (N, d), under the params of the step that led there.
        neighbors: what the interaction keeps between evaluations, current at the position.
        bath: what the method keeps besides: the seed of a stochastic one, the variables of a thermostat.
    """

    iteration: jax.Array
    position: jax.Array
    velocity: jax.Array
    force: jax.Array
    neighbors: Any
    bath: Any


type Evaluate = Callable[[jax.Array, Any], tuple[jax.Array, Any]]
"""``(position, neighbors) -> (force, neighbors)``, the neighbors refreshed at the new positions before."""


class Method(NamedTuple):
    """How positions and velocities advance by one time step; a thermostat is one too.

    Attributes:
        start: ``(params, key) -> bath``.
        advance: ``(state, params, mass, evaluate) -> state`` one ``time_step`` later, force and neighbors included;
            ``mass`` is a scalar or (N, 1). The caller counts the iteration.
    """

    start: Callable[[Params, jax.Array], Any]
    advance: Callable[[DynamicsState, Params, jax.Array, Evaluate], DynamicsState]
