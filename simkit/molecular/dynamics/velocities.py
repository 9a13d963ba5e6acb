"""Initial velocities from the Maxwell-Boltzmann distribution."""

import jax
import jax.numpy as jnp

from simkit.molecular.dynamics.measures import center_of_mass_velocity


def maxwell_boltzmann(
    key: jax.Array, temperature: jax.Array, mass: jax.Array, shape: tuple[int, ...], *, drift: bool
) -> jax.Array:
    """Draw velocities, each component normal with variance ``temperature / mass``.

    Args:
        key: random key.
        temperature: k_B T, energy, scalar.
        mass: scalar or (N, 1).
        shape: (N, d).
        drift: whether to keep the velocity of the center of mass; otherwise the total momentum is zero.

    Returns:
        Length / time, (N, d).
    """
    # Roots taken apart: where the temperature is zero, derivatives with respect to the mass are too.
    scale = jnp.sqrt(temperature) / jnp.sqrt(mass)
    velocity = scale * jax.random.normal(key, shape, scale.dtype)
    return velocity if drift else velocity - center_of_mass_velocity(velocity, mass)
