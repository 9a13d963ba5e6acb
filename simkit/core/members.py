"""Members of an ensemble along the last axis, where compiled loops run over whole rows of them, a block at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

# Scenes that one pass follows together; the working set of a few dozen contacts each then stays in a core's cache.
BLOCK = 128


def members_last[T](tree: T) -> T:
    """Return a tree of arrays with their first axis, that of the members, put last."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, 0, -1), tree)


def members_first[T](tree: T) -> T:
    """Return a tree of arrays with their last axis, that of the members, put first."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), tree)


def in_blocks[T](function: Callable[..., T], *trees: Any, block: int = BLOCK) -> T:
    """Return ``function(*trees)`` for a function that treats members one by one, a block of members after another.

    Args:
        function: of trees of arrays with a leading member axis, to another such tree.
        *trees: its arguments.
        block: members in each.
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
