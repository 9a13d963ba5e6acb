"""Frozen dataclasses that JAX can trace through."""

import dataclasses
from typing import Any, dataclass_transform

import jax


@dataclass_transform(frozen_default=True, kw_only_default=True)
def pytree[T](cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen, keyword-only dataclass whose fields are all pytree children.

    Use it for every simulation state: construction by keyword keeps a state readable however many
    fields it grows, and ``dataclasses.replace`` is the one way to change a field.
    """
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True)(cls))


def size_in_bytes(tree: Any) -> int:
    """Return the memory of the arrays of a pytree in bytes.

    Args:
        tree: pytree of arrays or of their shapes.
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
