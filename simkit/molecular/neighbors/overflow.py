"""Neighbor lists that run out of room: a status for the compiled run, and growth on the host."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params, Simulation
from simkit.core.status import Status, status_of
from simkit.molecular.interactions.interaction import Interaction


def growing(simulation: Simulation, interaction: Interaction, again: Callable[[Interaction], Simulation]) -> Simulation:
    """Return a simulation that reports an overflow of its interaction's lists and can be given more room.

    Its status is ``NEIGHBOR_OVERFLOW`` once a neighbor is or was missing, and its own otherwise.

    Args:
        simulation: one whose states keep what the interaction lists as ``neighbors``.
        interaction: the one it was made with.
        again: ``interaction -> simulation``, which makes it with another; it may be growing itself.
    """
    own_status = status_of(simulation)

    def status(state: Any, params: Params) -> jax.Array:
        # Comes last: an overflow makes the energy NaN on purpose, and more room is the remedy.
        code = own_status(state, params)
        return jnp.where(interaction.overflow(state.neighbors), jnp.int32(Status.NEIGHBOR_OVERFLOW), code)

    def grow(overflowed: Any, earlier: Any) -> tuple[Simulation, Any]:
        larger, neighbors = interaction.enlarge(overflowed.neighbors, earlier.neighbors)
        return again(larger), dataclasses.replace(earlier, neighbors=neighbors)

    return dataclasses.replace(simulation, status=status, grow=grow)
