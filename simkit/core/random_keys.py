"""Conversion of the random keys in a state to plain arrays and back."""

from typing import Any

import jax
import jax.numpy as jnp


def plain(leaf: Any) -> Any:
    """Return the data of a random key, uint32; any other array unchanged.

    Args:
        leaf: an array, or a random key.
    """
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def keyed(like: Any, leaf: Any) -> Any:
    """Return the inverse of `plain`: a random key where the template has one, any other array unchanged.

    Args:
        like: template, an array or random key, or the shape of one.
        leaf: result of `plain`.
    """
    return jax.random.wrap_key_data(jnp.asarray(leaf)) if _is_key(like) else leaf


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
