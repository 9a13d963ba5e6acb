"""Random keys of a bath, from a seed in the state and the count of steps: a resumed run draws the same numbers."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params


def seed(params: Params, key: jax.Array) -> jax.Array:
    """Return the seed of all noise of a bath, uint32, (2,).

    Args:
        params: unused; the signature is that of ``start`` of a bath.
        key: random key.
    """
    del params
    return jax.random.bits(key, (2,), jnp.uint32)


def key_of_step(bath: jax.Array, iteration: jax.Array) -> jax.Array:
    """Return the random key of one time step.

    Args:
        bath: uint32, (2,), from `seed`.
        iteration: int32, steps since the start.
    """
    return jax.random.fold_in(jax.random.wrap_key_data(bath, impl="threefry2x32"), iteration)
