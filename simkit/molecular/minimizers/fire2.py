"""FIRE 2.0: FIRE with a backward half step when the motion turns uphill, and a lower bound on the time step."""

import dataclasses

import jax.numpy as jnp

from simkit.core.parts import part
from simkit.molecular.minimizers.fire import (
    FireSettings,
    FireState,
    clamped,
    inertial_minimizer,
    next_time_step,
    turned_toward,
)
from simkit.molecular.minimizers.protocol import Minimizer, Scale

# Dimensionless ones as in the reference.
DEFAULTS = FireSettings(minimum_time_step=0.002, minimum_downhill_steps=20, start_mixing=0.25)


@part()
def fire2(settings: FireSettings = DEFAULTS) -> Minimizer:
    """Return FIRE 2.0.

    As `simkit.molecular.minimizers.fire.fire`, but the velocity is turned toward the force only if P > 0, and if
    P <= 0 the particles first move back by half the last step, ``x -= dt v / 2``, since they overshot.

    Args:
        settings: see `FireSettings`.

    Example:
        >>> descent = molecular.minimizers.fire2()
        >>> scale = molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(60):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]

    Reference: Guenole, Noehring, Vaid, Houlle, Xie, Prakash, Bitzek, Comput. Mater. Sci. 175, 109584 (2020),
    doi:10.1016/j.commatsci.2020.109584.
    """

    def aim(state: FireState, scale: Scale) -> FireState:
        pull = state.force / (scale.stiffness * scale.length)
        downhill = jnp.sum(pull * state.velocity) > 0
        downhill_steps = jnp.where(downhill, state.downhill_steps + 1, 0)
        gaining = downhill_steps > settings.minimum_downhill_steps
        shrinks = ~downhill & (state.iteration >= settings.minimum_downhill_steps)
        time_step = next_time_step(state, settings, shrinks=shrinks, grows=gaining)
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

    return inertial_minimizer(aim, settings)
