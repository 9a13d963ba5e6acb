"""Random keys among the arrays of a state, as plain numbers and back."""

from typing import Any

import jax
import jax.numpy as jnp


def plain(leaf: Any) -> Any:
    """Return the numbers of a random key, uint32; any other array as it is.

    Args:
        leaf: an array, or a random key.
    """
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def keyed(like: Any, leaf: Any) -> Any:
    """Return numbers as a random key where a template has one; as they are elsewhere.

    Args:
        like: an array, a random key, or the shape of one.
        leaf: what `plain` returns.
    """
    return jax.random.wrap_key_data(jnp.asarray(leaf)) if _is_key(like) else leaf


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
