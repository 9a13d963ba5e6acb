"""Random numbers of a bath: a seed kept in the state and the count of steps, so that a resumed run draws the same."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params


def seed(params: Params, key: jax.Array) -> jax.Array:
    """Return the seed of all noise to come, (2,).

    Args:
        params: of no effect.
        key: random key.
    """
    del params
    return jax.random.bits(key, (2,), jnp.uint32)


def draws_of(bath: jax.Array, iteration: jax.Array) -> jax.Array:
    """Return the random key of one time step.

    Args:
        bath: as from `seed`.
        iteration: int32, steps since the start.
    """
    return jax.random.fold_in(jax.random.wrap_key_data(bath, impl="threefry2x32"), iteration)
