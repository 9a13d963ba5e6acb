"""FIRE, the fast inertial relaxation engine: damped dynamics, stopped when the power F . v becomes negative."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.formulation import root
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.molecular.minimizers.protocol import Minimizer, Scale, quotient


class FireSettings(NamedTuple):
    """Settings of FIRE and FIRE 2.0; the dimensionless defaults are those of the authors of FIRE.

    Time is measured in ``sqrt(mass / stiffness)`` for unit mass, so these numbers hold for any choice of units.

    Attributes:
        start_time_step: first time step.
        maximum_time_step: upper bound; choose it below 2 / omega of the stiffest vibration, where the steps are stable.
        minimum_time_step: lower bound.
        minimum_downhill_steps: downhill steps before the time step grows; in FIRE 2.0 also iterations before it may
            shrink.
        time_step_growth: factor per downhill step.
        time_step_decrease: factor per uphill step.
        start_mixing: share of the velocity that is turned toward the force.
        mixing_decrease: factor per downhill step.
        maximum_displacement: largest displacement of a particle per step, in units of length.

    Example:
        >>> gentle = molecular.minimizers.FireSettings(maximum_time_step=0.3, maximum_displacement=0.05)
        >>> descent = molecular.minimizers.fire(gentle)
        >>> gentle.start_time_step, descent.monotone
        (0.1, False)
    """

    start_time_step: float = 0.1
    maximum_time_step: float = 0.6
    minimum_time_step: float = 0.0
    minimum_downhill_steps: int = 5
    time_step_growth: float = 1.1
    time_step_decrease: float = 0.5
    start_mixing: float = 0.1
    mixing_decrease: float = 0.99
    maximum_displacement: float = 0.1


DEFAULTS = FireSettings()
# Time steps of 2 / omega of the stiffest vibration are unstable; near that it turns the motion uphill all the time.
STABLE = 1.2
# Growth of the bound on the time step per iteration, since a curvature may be met once, and its least share of the
# maximum: larger curvatures are those of overlaps, which say nothing of vibrations.
RECOVERY, LEAST = 1.005, 0.01


@pytree
class FireState:
    """State of FIRE and FIRE 2.0.

    Attributes:
        position: (N, d).
        force: at ``position``, (N, d).
        trial: position to evaluate next, (N, d).
        iteration: int32, evaluations after the first.
        velocity: of the move to ``trial``, (N, d), in units of length per unit of time.
        time_step: scalar, in units of time.
        longest_time_step: scalar, bound on the time step by the curvature along the moves so far.
        mixing: scalar, current share of the velocity that is turned toward the force.
        downhill_steps: int32, steps since the last uphill step.
    """

    position: jax.Array
    force: jax.Array
    trial: jax.Array
    iteration: jax.Array
    velocity: jax.Array
    time_step: jax.Array
    longest_time_step: jax.Array
    mixing: jax.Array
    downhill_steps: jax.Array


@part()
def fire(settings: FireSettings = DEFAULTS) -> Minimizer:
    """Return the fast inertial relaxation engine.

    With P = F . v: if P < 0 the velocity is set to zero and the time step shrinks; otherwise, after a few steps, the
    time step grows and the mixing decreases. Then, by semi-implicit Euler,
    ``v += dt F``, ``v = (1 - mixing) v + mixing |v| F / |F|``, ``x += dt v``. If a particle would exceed the maximum
    displacement, the time step is shortened for this step alone, so that overlapping starts do not fly apart.

    Args:
        settings: see `FireSettings`.

    Example:
        >>> descent = molecular.minimizers.fire()
        >>> scale = molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(60):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]

    Reference: Bitzek, Koskinen, Gaehler, Moseler, Gumbsch, Phys. Rev. Lett. 97, 170201 (2006),
    doi:10.1103/PhysRevLett.97.170201; semi-implicit Euler after Guenole et al., Comput. Mater. Sci. 175, 109584
    (2020), doi:10.1016/j.commatsci.2020.109584.
    """

    def aim(state: FireState, scale: Scale) -> FireState:
        pull = state.force / (scale.stiffness * scale.length)
        uphill = jnp.sum(pull * state.velocity) < 0
        downhill_steps = jnp.where(uphill, 0, state.downhill_steps + 1)
        gaining = downhill_steps > settings.minimum_downhill_steps
        time_step = next_time_step(state, settings, shrinks=uphill, grows=gaining)
        mixing = jnp.where(gaining, state.mixing * settings.mixing_decrease, state.mixing)
        mixing = jnp.where(uphill, settings.start_mixing, mixing)

        velocity = jnp.where(uphill, 0, state.velocity) + time_step * pull
        velocity = turned_toward(velocity, pull, mixing)
        trial = state.position + scale.length * clamped(time_step, velocity, settings.maximum_displacement) * velocity
        return dataclasses.replace(
            state, trial=trial, velocity=velocity, time_step=time_step, mixing=mixing, downhill_steps=downhill_steps
        )

    return inertial_minimizer(aim, settings)


def inertial_minimizer(aim: Callable[[FireState, Scale], FireState], settings: FireSettings) -> Minimizer:
    """Return the minimizer that accepts every trial, from rest.

    Args:
        aim: ``(state, scale) -> state`` with the next trial.
        settings: for the first time step and mixing.
    """

    def start(position: jax.Array, energy: jax.Array, force: jax.Array, scale: Scale) -> FireState:
        del energy
        state = FireState(
            position=position,
            force=force,
            trial=position,
            iteration=jnp.int32(0),
            velocity=jnp.zeros_like(position),
            time_step=jnp.asarray(settings.start_time_step, dtype=position.dtype),
            longest_time_step=jnp.asarray(settings.maximum_time_step, dtype=position.dtype),
            mixing=jnp.asarray(settings.start_mixing, dtype=position.dtype),
            downhill_steps=jnp.int32(0),
        )
        return aim(state, scale)

    def advance(state: FireState, energy: jax.Array, force: jax.Array, scale: Scale) -> FireState:
        del energy
        longest = longest_time_step(state, force, scale, settings.maximum_time_step)
        moved = dataclasses.replace(
            state,
            position=state.trial,
            force=force,
            iteration=state.iteration + 1,
            longest_time_step=longest,
        )
        return aim(moved, scale)

    return Minimizer(start=start, advance=advance, monotone=False, patience=2000)


def longest_time_step(state: FireState, force: jax.Array, scale: Scale, maximum: float) -> jax.Array:
    """Return the bound on the time step after a move, by the curvature along it.

    Particles may meet curvatures that the scale does not know, such as those of a stiff field. With the move s and the
    change y of the force against it, ``sum(y**2) / sum(abs(s * y))`` is a mean of the curvatures in which the largest
    weigh most, and never exceeds the largest of a convex quadratic energy. Without the absolute values, positive and
    negative curvatures of a packing cancel to far smaller bounds. It is a constant to derivatives, like the choice of a
    step.

    Args:
        state: before the move.
        force: after it, (N, d).
        scale: see `Scale`.
        maximum: largest bound.
    """
    # Otherwise the derivative of unrolled iterations is NaN where nothing moves.
    state, force, scale = jax.lax.stop_gradient((state, force, scale))
    change, move = state.force - force, state.trial - state.position
    stable = STABLE * jnp.sqrt(scale.stiffness * jnp.sum(jnp.abs(move * change)) / jnp.sum(change**2))
    recovered = jnp.minimum(state.longest_time_step * RECOVERY, maximum)
    # NaN, where particles did not move, is not larger.
    return jnp.where(stable > LEAST * maximum, jnp.minimum(stable, recovered), recovered)


def next_time_step(state: FireState, settings: FireSettings, *, shrinks: jax.Array, grows: jax.Array) -> jax.Array:
    """Return the time step after an iteration, within its bounds.

    Args:
        state: before it.
        settings: see `FireSettings`.
        shrinks: whether the motion was uphill and the time step shrinks, a boolean scalar.
        grows: whether it grows otherwise, a boolean scalar.
    """
    factor = jnp.where(shrinks, settings.time_step_decrease, jnp.where(grows, settings.time_step_growth, 1.0))
    time_step = state.time_step * factor
    if settings.minimum_time_step:
        time_step = jnp.maximum(time_step, settings.minimum_time_step)
    return jnp.minimum(time_step, state.longest_time_step)


def turned_toward(velocity: jax.Array, pull: jax.Array, mixing: jax.Array) -> jax.Array:
    """Return ``(1 - mixing) v + mixing |v| F / |F|``, without the second term if F is zero.

    Its derivatives are finite where v or F is zero, as in a start at rest.

    Args:
        velocity: (N, d).
        pull: F in any unit, (N, d).
        mixing: scalar in [0, 1].
    """
    return velocity + mixing * (root(quotient(jnp.sum(velocity**2), jnp.sum(pull**2), 0)) * pull - velocity)


def clamped(time_step: jax.Array, velocity: jax.Array, maximum_displacement: float) -> jax.Array:
    """Return the time step, shortened so that no particle moves further than ``maximum_displacement``.

    Args:
        time_step: scalar.
        velocity: (N, d).
        maximum_displacement: in the unit of length of the velocity.
    """
    # Not the safe norm: its derivative is not needed where the bound takes over.
    fastest = jnp.max(jnp.sum(velocity**2, axis=-1))
    return jnp.minimum(time_step, maximum_displacement / jnp.sqrt(jnp.maximum(fastest, jnp.finfo(velocity.dtype).tiny)))
