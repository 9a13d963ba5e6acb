"""Interface of a minimizer: two pure functions, start and advance; the caller evaluates energy and force."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp

from simkit.core.formulation import root
from simkit.core.pytrees import pytree

type Evaluate = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Scale(NamedTuple):
    """Units of length and stiffness of a problem: scaled together with the problem they leave all iterates unchanged.

    Attributes:
        length: scalar; a particle diameter. The largest move in one step is a fraction of it.
        stiffness: energy / length^2, scalar; the curvature of a bond or contact. It sets the first step.

    Example:
        >>> argon = molecular.minimizers.Scale(length=3.4, stiffness=57.1 * 0.0104 / 3.4**2)
        >>> f"{argon.length} A, {argon.stiffness:.3f} eV/A^2"
        '3.4 A, 0.051 eV/A^2'
    """

    length: jax.Array
    stiffness: jax.Array


class Minimizer(NamedTuple):
    """A minimization method, with one evaluation of energy and force per iteration.

    A state is a pytree with at least ``position`` and the ``force`` there, both (N, d), ``trial``, the position to
    evaluate next, (N, d), and ``iteration``, int32, the number of evaluations after the first. A minimizer does not
    evaluate energies itself, so the caller may maintain neighbor lists, count, or stop.

    Attributes:
        start: ``(position, energy, force, scale) -> state``.
        advance: ``(state, energy, force, scale) -> state``, with energy and force at ``state.trial``.
        monotone: whether the state also has the ``energy`` at ``position``, which then never increases; otherwise
            the energy is ignored and need not be computed.
        patience: iterations without a smaller force or, if monotone, a lower energy after which the minimization has
            stalled.

    Example:
        >>> descent = molecular.minimizers.gradient_descent()
        >>> isinstance(descent, molecular.minimizers.Minimizer), descent.monotone
        (True, True)
    """

    start: Callable[[jax.Array, jax.Array, jax.Array, Scale], Any]
    advance: Callable[[Any, jax.Array, jax.Array, Scale], Any]
    monotone: bool
    patience: int


@pytree
class Descent:
    """State of a monotone minimizer: the lowest position, and the trial to compare with it.

    Attributes:
        position: (N, d).
        energy: at ``position``.
        force: at ``position``, (N, d).
        trial: position to evaluate next, (N, d).
        iteration: int32, evaluations after the first.
    """

    position: jax.Array
    energy: jax.Array
    force: jax.Array
    trial: jax.Array
    iteration: jax.Array

    @classmethod
    def begun(cls, position: jax.Array, energy: jax.Array, force: jax.Array, **memory: jax.Array) -> Self:
        """Return the state at the start, with the further fields of a method."""
        place = {"position": position, "energy": energy, "force": force, "trial": position}
        return cls(**place, iteration=jnp.int32(0), **memory)

    def tried(self, accepted: jax.Array, energy: jax.Array, force: jax.Array, **memory: jax.Array) -> Self:
        """Return the state after an evaluation at the trial, which becomes the position if it is accepted."""
        return dataclasses.replace(
            self,
            position=jnp.where(accepted, self.trial, self.position),
            energy=jnp.where(accepted, energy, self.energy),
            force=jnp.where(accepted, force, self.force),
            iteration=self.iteration + 1,
            **memory,
        )


def start(minimizer: Minimizer, position: jax.Array, evaluate: Evaluate, scale: Scale) -> Any:
    """Return the initial state of a minimizer.

    Args:
        minimizer: the method.
        position: (N, d).
        evaluate: ``position -> (energy, force)``.
        scale: see `Scale`.

    Example:
        >>> descent, scale = molecular.minimizers.lbfgs(), molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum(x**2) / 2, -x)
        >>> state = molecular.minimizers.start(descent, jnp.array([[1.0, 2.0]]), evaluate, scale)
        >>> state.force.tolist(), int(state.iteration)
        ([[-1.0, -2.0]], 0)
    """
    return minimizer.start(position, *evaluate(position), scale)


def step(minimizer: Minimizer, state: Any, evaluate: Evaluate, scale: Scale) -> Any:
    """Return the state after one iteration, with one evaluation.

    Args:
        minimizer: the method.
        state: from `start` or `step`.
        evaluate: ``position -> (energy, force)``.
        scale: see `Scale`.

    Example:
        >>> descent, scale = molecular.minimizers.lbfgs(), molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(25):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]
    """
    return minimizer.advance(state, *evaluate(state.trial), scale)


def energy_change(state: Any, energy: jax.Array, force: jax.Array, scale: Scale) -> jax.Array:
    """Return the energy at the trial less the energy at the position, also below the round-off of the energies.

    There it is the work of the mean force, ``-(F + F') . dx / 2``, exact to third order in the step, whose sign is
    right even if the energies agree in all their digits.

    Args:
        state: a minimizer's state with ``position``, ``energy``, ``force`` and ``trial``.
        energy: at the trial, scalar.
        force: at the trial, (N, d).
        scale: see `Scale`.
    """
    difference = energy - state.energy
    noise = energy_noise(jnp.maximum(jnp.abs(energy), jnp.abs(state.energy)), len(force), scale)
    work = -dot(state.force + force, state.trial - state.position) / 2
    return jnp.where(jnp.abs(difference) > noise, difference, work)


def energy_noise(energy: jax.Array, count: int, scale: Scale) -> jax.Array:
    """Return a bound on the round-off of an energy, a sum of many terms.

    Terms may cancel to an energy near zero, so the bound is at least that of terms of a tenth of the energy
    ``stiffness * length**2`` for each particle.

    Args:
        energy: scalar.
        count: number of particles.
        scale: see `Scale`.
    """
    terms = count * scale.stiffness * scale.length**2 / 10
    return 100 * jnp.finfo(energy.dtype).eps * jnp.maximum(jnp.abs(energy), terms).astype(energy.dtype)


def parabola_minimum(work: jax.Array, change: jax.Array) -> jax.Array:
    """Return the step length to the minimum of the parabola through a rejected step, within 0.1 to 0.5 of that step.

    Args:
        work: of the initial force along the step, energy; the initial slope is its negative.
        change: energy after the step less that before.
    """
    return jnp.clip(quotient(work, 2 * (change + work), 0.1), 0.1, 0.5)


def quotient(dividend: jax.typing.ArrayLike, divisor: jax.Array, otherwise: jax.typing.ArrayLike) -> jax.Array:
    """Return the quotient where the divisor is positive and another value elsewhere, with finite derivatives in both.

    Where nothing moves, divisors are zero, and a choice after the division has the derivative NaN.
    """
    positive = divisor > 0
    return jnp.where(positive, dividend / jnp.where(positive, divisor, 1), otherwise)


def dot(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the sum over all components of the product of two arrays of vectors."""
    return jnp.sum(a * b)


def largest_norm(vectors: jax.Array) -> jax.Array:
    """Return the norm of the longest vector, with a finite derivative even if all are zero.

    Args:
        vectors: (N, d).

    Example:
        >>> float(molecular.minimizers.largest_norm(jnp.array([[3.0, 4.0], [1.0, 0.0]])))
        5.0
    """
    return root(jnp.max(jnp.sum(vectors**2, axis=-1)))


def clip(displacement: jax.Array, limit: jax.Array) -> jax.Array:
    """Return all displacements multiplied by one factor so that none is longer than ``limit``.

    Args:
        displacement: (N, d).
        limit: length, scalar.
    """
    longest = largest_norm(displacement)
    return displacement * jnp.minimum(1, limit / jnp.where(longest > 0, longest, 1))
