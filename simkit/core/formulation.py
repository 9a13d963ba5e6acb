"""Formulations for compilers and runtimes: barriers, whole arrays, and ensembles with the member axis last."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata


def computed_once[T](tree: T) -> T:
    """Return arrays unchanged, behind an optimization barrier: computed once, in their own loop, and written to memory.

    Without it, XLA fuses the computation into every loop that uses the arrays and repeats it there, reads a fused
    concatenation with a branch per element, and folds constants at compile time, which may take seconds.

    Args:
        tree: pytree of arrays.
    """
    return jax.lax.optimization_barrier(tree)


_IS_ACTIVE = ContextVar("simkit_whole_arrays", default=False)


def prefers_whole_arrays() -> bool:
    """Return whether few operations on whole arrays are faster than loops over their rows.

    True in programs traced inside `whole_arrays`: their runtime dispatches every operation of every loop iteration
    separately, while XLA fuses them. Used at trace time to choose between methods that differ in round-off only.
    """
    return _IS_ACTIVE.get()


@contextmanager
def whole_arrays() -> Iterator[None]:
    """Trace programs inside the block for a runtime that executes one operation after the other.

    JAX caches traced programs; the metadata set here keep these apart from those traced outside.
    """
    token = _IS_ACTIVE.set(True)
    try:
        with set_xla_metadata(simkit_whole_arrays="1"):
            yield
    finally:
        _IS_ACTIVE.reset(token)


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
