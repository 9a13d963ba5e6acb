"""Test whether a time step is short enough for the change of forces within the step."""

import jax
import jax.numpy as jnp

from simkit.molecular.dynamics.protocol import DynamicsState

# Stiffness above which forces count as unresolved, in units of 1/time_step^2. A liquid at its usual time step has
# 0.01 and a step of 1/6 of a period 1; overlapping particles that separate beyond the cut-off in one step have 2,
# however strong the force was; velocity Verlet is unstable from 4.
STIFFEST = 1.0
# Shortest displacement that is tested, relative to the largest coordinate, in units of round-off.
LEAST_STEP = 1e3


def is_unresolved(before: DynamicsState, after: DynamicsState, mass: jax.Array, time_step: jax.Array) -> jax.Array:
    """Return whether the forces changed in one step by more than the time step resolves.

        dt^2 |change of F/m| > |displacement|

    Both are norms over all particles, dominated by those that moved farthest.

    Args:
        before: state before the step.
        after: state after the step.
        mass: scalar or (N, 1).
        time_step: length of the step.
    """
    moved = after.position - before.position
    change = (after.force - before.force) / mass * time_step**2
    least = LEAST_STEP * jnp.finfo(moved.dtype).eps * jnp.max(jnp.abs(after.position))
    squared = jnp.sum(moved**2)
    return (jnp.sum(change**2) > STIFFEST**2 * squared) & (squared > least**2)
