"""FIRE, the fast inertial relaxation engine: downhill motion with inertia that stops when it turns uphill."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree


class FireSettings(NamedTuple):
    """What steers FIRE; the defaults without a unit are those of its authors.

    Time is measured in ``sqrt(length / force)`` of the scales given to `step` (unit mass), so these numbers hold for
    any choice of units.

    Attributes:
        start_time_step: first time step.
        maximum_time_step: where growth ends; below 2 / omega of the stiffest vibration, or FIRE keeps backing off.
        minimum_downhill_steps: steps downhill before the time step grows.
        time_step_growth: factor per step downhill.
        time_step_decrease: factor when the motion turns uphill.
        start_mixing: share of the velocity that is turned toward the force.
        mixing_decrease: factor per step downhill.
        maximum_displacement: furthest any particle moves in one step, in units of length.
    """

    start_time_step: float = 0.1
    maximum_time_step: float = 0.6
    minimum_downhill_steps: int = 5
    time_step_growth: float = 1.1
    time_step_decrease: float = 0.5
    start_mixing: float = 0.1
    mixing_decrease: float = 0.99
    maximum_displacement: float = 0.1


DEFAULTS = FireSettings()


@pytree
class FireState:
    """A relaxation under way.

    Attributes:
        position: (N, d).
        velocity: (N, d), in units of length per unit of time.
        force: (N, d), the force at ``position``, kept so that a convergence test costs nothing.
        time_step: scalar, in units of time.
        mixing: scalar, current share of the velocity that is turned toward the force.
        downhill_steps: int32, steps since the motion last turned uphill.
        iteration: int32, steps since the start.
    """

    position: jax.Array
    velocity: jax.Array
    force: jax.Array
    time_step: jax.Array
    mixing: jax.Array
    downhill_steps: jax.Array
    iteration: jax.Array


def start(
    position: jax.Array, force: Callable[[jax.Array], jax.Array], *, settings: FireSettings = DEFAULTS
) -> FireState:
    """Return a relaxation at rest.

    Args:
        position: (N, d).
        force: ``position -> force``, both (N, d).
        settings: see `FireSettings`.
    """
    return FireState(
        position=position,
        velocity=jnp.zeros_like(position),
        force=force(position),
        time_step=jnp.asarray(settings.start_time_step, dtype=position.dtype),
        mixing=jnp.asarray(settings.start_mixing, dtype=position.dtype),
        downhill_steps=jnp.int32(0),
        iteration=jnp.int32(0),
    )


def step(
    state: FireState,
    force: Callable[[jax.Array], jax.Array],
    *,
    length: jax.Array,
    force_scale: jax.Array,
    settings: FireSettings = DEFAULTS,
) -> FireState:
    """Take one step, with one evaluation of the force.

    With P = F . v: where P < 0 the motion stops and the time step shrinks; otherwise it goes on, and after a few steps
    the time step grows and the mixing fades. Then, by semi-implicit Euler,
    ``v += dt F``, ``v = (1 - mixing) v + mixing |v| F / |F|``, ``x += dt v``. Where a particle would move further than
    the maximum displacement the time step is cut for this one step, so that overlapping starts do not fly apart.

    Multiplying length and force scale along with the problem changes no iterate but for round-off.

    Args:
        state: from `start` or `step`.
        force: ``position -> force``, both (N, d).
        length: scale of length, scalar; a particle diameter.
        force_scale: scale of force, scalar; the stiffness of a contact times ``length``.
        settings: see `FireSettings`.

    Reference: Bitzek, Koskinen, Gaehler, Moseler, Gumbsch, Phys. Rev. Lett. 97, 170201 (2006),
    doi:10.1103/PhysRevLett.97.170201; semi-implicit Euler after Guenole et al., Comput. Mater. Sci. 175, 109584
    (2020), doi:10.1016/j.commatsci.2020.109584.
    """
    pull = state.force / force_scale
    uphill = jnp.sum(pull * state.velocity) < 0
    downhill_steps = jnp.where(uphill, 0, state.downhill_steps + 1)
    gaining = downhill_steps > settings.minimum_downhill_steps
    grown = jnp.minimum(state.time_step * settings.time_step_growth, settings.maximum_time_step)
    time_step = jnp.where(gaining, grown, state.time_step)
    time_step = jnp.where(uphill, state.time_step * settings.time_step_decrease, time_step)
    mixing = jnp.where(gaining, state.mixing * settings.mixing_decrease, state.mixing)
    mixing = jnp.where(uphill, settings.start_mixing, mixing)

    velocity = jnp.where(uphill, 0, state.velocity) + time_step * pull
    pull_norm = jnp.sqrt(jnp.sum(pull**2))
    heading = jnp.where(pull_norm > 0, pull / jnp.where(pull_norm > 0, pull_norm, 1), 0)
    velocity = (1 - mixing) * velocity + mixing * jnp.sqrt(jnp.sum(velocity**2)) * heading

    fastest = largest_norm(velocity)
    limit = settings.maximum_displacement / jnp.where(fastest > 0, fastest, 1)
    position = state.position + length * jnp.minimum(time_step, limit) * velocity
    return dataclasses.replace(
        state,
        position=position,
        velocity=velocity,
        force=force(position),
        time_step=time_step,
        mixing=mixing,
        downhill_steps=downhill_steps,
        iteration=state.iteration + 1,
    )


def largest_norm(vectors: jax.Array) -> jax.Array:
    """Return the length of the longest vector, with a finite derivative even where all are zero.

    Args:
        vectors: (N, d).
    """
    squared = jnp.max(jnp.sum(vectors**2, axis=-1))
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)
