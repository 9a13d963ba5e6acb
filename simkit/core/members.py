"""Layout of ensembles with the member axis last, over which compiled loops are vectorized, and blocks of members."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

# Members per block: scenes of a few dozen contacts each then stay in a core's cache.
BLOCK = 128


def members_last[T](tree: T) -> T:
    """Return a pytree of arrays with the member axis moved from first to last."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, 0, -1), tree)


def members_first[T](tree: T) -> T:
    """Return a pytree of arrays with the member axis moved from last to first."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), tree)


def in_blocks[T](function: Callable[..., T], *trees: Any, block: int = BLOCK) -> T:
    """Return ``function(*trees)``, computed one block of members after another.

    Args:
        function: maps pytrees of arrays with a leading member axis to another such pytree, independently for each
            member.
        *trees: its arguments.
        block: number of members per block.
    """
    count = jax.tree.leaves(trees)[0].shape[0]
    whole = count // block * block
    if count <= block:
        return function(*trees)
    blocks = jax.tree.map(lambda array: array[:whole].reshape(-1, block, *array.shape[1:]), trees)
    results = jax.lax.map(lambda trees: function(*trees), blocks)
    results = jax.tree.map(lambda array: array.reshape(whole, *array.shape[2:]), results)
    if whole == count:
        return results
    rest = function(*jax.tree.map(lambda array: array[whole:], trees))
    return jax.tree.map(lambda head, tail: jnp.concatenate([head, tail]), results, rest)
