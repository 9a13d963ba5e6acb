"""FIRE 2.0: FIRE that steps back half a step when it turns uphill, with a floor under its time step."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.minimizers.fire import FireState, at_rest, clamped, turned_toward
from simkit.molecular.minimizers.protocol import Minimizer, Scale


class Fire2Settings(NamedTuple):
    """What steers FIRE 2.0; the defaults without a unit are those of its authors.

    Attributes:
        start_time_step: first time step, in units of ``sqrt(mass / stiffness)`` for unit mass.
        maximum_time_step: where growth ends, in the same units.
        minimum_time_step: where shrinking ends, in the same units.
        minimum_downhill_steps: steps downhill before the time step grows, and from the start before it may shrink.
        time_step_growth: factor per step downhill.
        time_step_decrease: factor when the motion turns uphill.
        start_mixing: share of the velocity that is turned toward the force.
        mixing_decrease: factor per step downhill.
        maximum_displacement: furthest any particle moves in one step, in units of length.
    """

    start_time_step: float = 0.1
    maximum_time_step: float = 0.6
    minimum_time_step: float = 0.002
    minimum_downhill_steps: int = 20
    time_step_growth: float = 1.1
    time_step_decrease: float = 0.5
    start_mixing: float = 0.25
    mixing_decrease: float = 0.99
    maximum_displacement: float = 0.1


DEFAULTS = Fire2Settings()


def fire2(settings: Fire2Settings = DEFAULTS) -> Minimizer:
    """Return FIRE 2.0.

    As `simkit.molecular.minimizers.fire.fire`, but the velocity is turned toward the force only where P > 0, and where
    P <= 0 the particles first go back half the last step, ``x -= dt v / 2``, over whose end they had shot.

    Args:
        settings: see `Fire2Settings`.

    Reference: Guenole, Noehring, Vaid, Houlle, Xie, Prakash, Bitzek, Comput. Mater. Sci. 175, 109584 (2020),
    doi:10.1016/j.commatsci.2020.109584.
    """

    def aim(state: FireState, scale: Scale) -> FireState:
        pull = state.force / (scale.stiffness * scale.length)
        downhill = jnp.sum(pull * state.velocity) > 0
        downhill_steps = jnp.where(downhill, state.downhill_steps + 1, 0)
        gaining = downhill_steps > settings.minimum_downhill_steps
        grown = jnp.minimum(state.time_step * settings.time_step_growth, settings.maximum_time_step)
        shrunk = jnp.maximum(state.time_step * settings.time_step_decrease, settings.minimum_time_step)
        may_shrink = state.iteration >= settings.minimum_downhill_steps
        time_step = jnp.where(gaining, grown, jnp.where(~downhill & may_shrink, shrunk, state.time_step))
        mixing = jnp.where(gaining, state.mixing * settings.mixing_decrease, state.mixing)
        mixing = jnp.where(downhill, mixing, settings.start_mixing)

        last_step = clamped(state.time_step, state.velocity, settings.maximum_displacement)
        back = jnp.where(downhill, 0, scale.length * last_step / 2) * state.velocity
        velocity = jnp.where(downhill, state.velocity, 0) + time_step * pull
        velocity = jnp.where(downhill, turned_toward(velocity, pull, mixing), velocity)
        forth = scale.length * clamped(time_step, velocity, settings.maximum_displacement) * velocity
        return dataclasses.replace(
            state,
            trial=state.position - back + forth,
            velocity=velocity,
            time_step=time_step,
            mixing=mixing,
            downhill_steps=downhill_steps,
        )

    def start(position: jax.Array, energy: jax.Array, force: jax.Array, scale: Scale) -> FireState:
        del energy
        state = at_rest(position, force, settings.start_time_step, settings.start_mixing)
        return aim(state, scale)

    def advance(state: FireState, energy: jax.Array, force: jax.Array, scale: Scale) -> FireState:
        del energy
        return aim(dataclasses.replace(state, position=state.trial, force=force, iteration=state.iteration + 1), scale)

    return Minimizer(start=start, advance=advance, monotone=False, patience=2000)
