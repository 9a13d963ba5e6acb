"""Buffers: the parts of a state whose arrays have a limited capacity, which compiled code cannot change."""

import functools
import operator
from typing import Any, Self

import jax
import jax.numpy as jnp


class Buffer:
    """Part of a state that may run out of room, such as a list of neighbors; a base class of `simkit` pytrees.

    Once more was needed than there is room for, the status is ``BUFFER_OVERFLOW`` (`simkit.core.status.status_of`),
    whatever else it would be, and `simkit.core.growth.with_room` goes back and makes the buffer larger. A subclass has
    ``needed``, ``capacity`` and ``resized``; arrays may have leading axes of members.

    Attributes:
        needed: int32, most entries that were needed since the start; it never falls, so that none is missed.
    """

    needed: jax.Array

    @property
    def capacity(self) -> int:
        """How many entries there is room for, from the shape of an array."""
        raise NotImplementedError

    def resized(self, capacity: int) -> Self:
        """Return the same contents with other room.

        Args:
            capacity: at least the present one.
        """
        raise NotImplementedError

    @property
    def overflowed(self) -> jax.Array:
        """Whether an entry is or was missing."""
        return self.needed > self.capacity

    def enlarged(self) -> Self:
        """Return a buffer with room for what was needed, on the host; its contents mean nothing."""
        return self.resized(larger_capacity(int(jnp.max(self.needed)), self.capacity))

    def sized_like(self, example: Any) -> Self:
        """Return the same contents with the room of another, on the host.

        Args:
            example: a buffer of the same kind, at least as large.
        """
        return self.resized(example.capacity)


def larger_capacity(needed: int, present: int) -> int:
    """Return a capacity with room to spare for what an overflowed buffer needed.

    It grows by at least a quarter, so that a run meets few capacities, each of which is compiled anew.

    Args:
        needed: entries needed.
        present: capacity so far.
    """
    return -(-max(int(1.1 * needed), int(1.25 * present)) // 8) * 8


def overflow_of(tree: Any) -> jax.Array | None:
    """Return whether any buffer in a state has overflowed, boolean per member; ``None`` if there is no buffer.

    Args:
        tree: any pytree.
    """
    found = [buffer.overflowed for buffer in jax.tree.leaves(tree, is_leaf=_is_buffer) if _is_buffer(buffer)]
    return functools.reduce(operator.or_, found) if found else None


def enlarged(state: Any) -> Any:
    """Return a state whose buffers have room for what was needed, on the host; its contents mean nothing.

    Args:
        state: concrete, of one member or of many; buffers that did not overflow stay as they are.
    """

    def larger(part: Any) -> Any:
        return part.enlarged() if _is_buffer(part) and bool(jnp.any(part.overflowed)) else part

    return jax.tree.map(larger, state, is_leaf=_is_buffer)


def sized_like(state: Any, example: Any) -> Any:
    """Return the same state with the room of another, on the host.

    Args:
        state: has not overflowed.
        example: a state of the same structure whose buffers are at least as large; only their sizes matter.
    """
    parts, structure = jax.tree.flatten(state, is_leaf=_is_buffer)
    others = jax.tree.leaves(example, is_leaf=_is_buffer)
    sized = [
        part.sized_like(other) if _is_buffer(part) and _shapes(part) != _shapes(other) else part
        for part, other in zip(parts, others, strict=True)
    ]
    return jax.tree.unflatten(structure, sized)


def _shapes(part: Any) -> list[tuple[int, ...]]:
    return [jnp.shape(leaf) for leaf in jax.tree.leaves(part)]


def _is_buffer(part: Any) -> bool:
    return isinstance(part, Buffer)
