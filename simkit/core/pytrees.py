"""Frozen dataclasses that JAX can trace through, and the random keys among their arrays."""

import dataclasses
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp


@dataclass_transform(frozen_default=True, kw_only_default=True)
def pytree[T](cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen, keyword-only dataclass whose fields are all pytree children.

    Use it for every simulation state: construction by keyword keeps a state readable however many
    fields it grows, and ``dataclasses.replace`` is the one way to change a field.

    Example:
        >>> @core.pytree
        ... class Ball:
        ...     height: jax.Array
        ...     velocity: jax.Array
        ...     time: jax.Array
        >>> ball = Ball(height=jnp.array(1.0), velocity=jnp.array(0.0), time=jnp.array(0.0))
        >>> jax.tree.map(lambda each: each + 1, ball).height.item()
        2.0
    """
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True)(cls))


def size_in_bytes(tree: Any) -> int:
    """Return the memory of the arrays of a pytree in bytes.

    Args:
        tree: pytree of arrays or of their shapes.
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


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
