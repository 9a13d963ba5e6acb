"""Interface of a minimizer: two pure functions that see an energy only at the points they ask for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

type Evaluate = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Scale(NamedTuple):
    """The units a problem is posed in; multiplying them along with the problem changes no iterate but for round-off.

    Attributes:
        length: scalar; a particle diameter. The largest move in one step is a fraction of it.
        stiffness: energy / length^2, scalar; the curvature of a bond or contact. It sets the first step.
    """

    length: jax.Array
    stiffness: jax.Array


class Minimizer(NamedTuple):
    """A method that walks downhill, one evaluation of energy and force per iteration.

    A state is a pytree with at least ``position`` and the ``force`` there, both (N, d), ``trial``, the position to
    evaluate next, (N, d), and ``iteration``, int32, the number of evaluations after the first. A minimizer never calls
    anything, so the caller, which evaluates, may keep neighbor lists, count, or stop.

    Attributes:
        start: ``(position, energy, force, scale) -> state``.
        advance: ``(state, energy, force, scale) -> state``, told the energy and force at ``state.trial``.
        monotone: whether the state also has the ``energy`` at ``position``, which then never increases; otherwise
            the energy is not looked at and need not be computed.
        patience: iterations without a smaller force or a lower energy after which nothing more is to be expected.
    """

    start: Callable[[jax.Array, jax.Array, jax.Array, Scale], Any]
    advance: Callable[[Any, jax.Array, jax.Array, Scale], Any]
    monotone: bool
    patience: int


def start(minimizer: Minimizer, position: jax.Array, evaluate: Evaluate, scale: Scale) -> Any:
    """Return the state from which ``minimizer`` sets out.

    Args:
        minimizer: the method.
        position: (N, d).
        evaluate: ``position -> (energy, force)``.
        scale: see `Scale`.
    """
    return minimizer.start(position, *evaluate(position), scale)


def step(minimizer: Minimizer, state: Any, evaluate: Evaluate, scale: Scale) -> Any:
    """Take one iteration, with one evaluation.

    Args:
        minimizer: the method.
        state: from `start` or `step`.
        evaluate: ``position -> (energy, force)``.
        scale: see `Scale`.
    """
    return minimizer.advance(state, *evaluate(state.trial), scale)


def energy_change(state: Any, energy: jax.Array, force: jax.Array) -> jax.Array:
    """Return the energy at the trial less that at the position, also where their difference drowns in round-off.

    There the work of the mean force, ``-(F + F') . dx / 2``, is exact to third order in the step, and tells downhill
    from uphill long after the energies agree in all their digits.

    Args:
        state: a minimizer's state with ``position``, ``energy``, ``force`` and ``trial``.
        energy: at the trial, scalar.
        force: at the trial, (N, d).
    """
    difference = energy - state.energy
    noise = energy_noise(jnp.maximum(jnp.abs(energy), jnp.abs(state.energy)))
    work = -dot(state.force + force, state.trial - state.position) / 2
    return jnp.where(jnp.abs(difference) > noise, difference, work)


def energy_noise(energy: jax.Array) -> jax.Array:
    """Return the round-off to expect in an energy: a sum of many terms that cancel in part."""
    return 100 * jnp.finfo(energy.dtype).eps * jnp.abs(energy)


def dot(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the sum over all components of the product of two arrays of vectors."""
    return jnp.sum(a * b)


def largest_norm(vectors: jax.Array) -> jax.Array:
    """Return the length of the longest vector, with a finite derivative even where all are zero.

    Args:
        vectors: (N, d).
    """
    squared = jnp.max(jnp.sum(vectors**2, axis=-1))
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)


def clip(displacement: jax.Array, limit: jax.Array) -> jax.Array:
    """Shorten all displacements by one factor so that none is longer than ``limit``.

    Args:
        displacement: (N, d).
        limit: length, scalar.
    """
    longest = largest_norm(displacement)
    return displacement * jnp.minimum(1, limit / jnp.where(longest > 0, longest, 1))
