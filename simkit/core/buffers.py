"""Buffers: parts of a state whose arrays have a fixed capacity in compiled code."""

import functools
import operator
from typing import Any, Self

import jax
import jax.numpy as jnp


class Buffer:
    """Part of a state that may overflow, such as a neighbor list; a base class of `simkit` pytrees.

    When more entries are needed than the capacity, the status is ``BUFFER_OVERFLOW`` (`simkit.core.status.status_of`),
    before any other status, and `simkit.core.converge.with_room` repeats the run with a larger buffer. A subclass
    defines ``needed``, ``capacity`` and ``resized``; arrays may have leading member axes.

    Attributes:
        needed: int32, largest number of entries needed since the start; it never decreases, so no overflow is missed.

    Example:
        >>> @core.pytree
        ... class Hits(core.Buffer):
        ...     times: jax.Array
        ...     needed: jax.Array
        ...
        ...     @property
        ...     def capacity(self):
        ...         return self.times.shape[-1]
        ...
        ...     def resized(self, capacity):
        ...         return Hits(times=jnp.resize(self.times, capacity), needed=self.needed)
        >>> hits = Hits(times=jnp.zeros(8), needed=jnp.int32(9))
        >>> bool(hits.overflowed), hits.enlarged().capacity
        (True, 16)
    """

    needed: jax.Array

    @property
    def capacity(self) -> int:
        """Largest number of entries, from the shape of an array."""
        raise NotImplementedError

    def resized(self, capacity: int) -> Self:
        """Return the same contents with another capacity.

        Args:
            capacity: number of entries, at least the present capacity.
        """
        raise NotImplementedError

    @property
    def overflowed(self) -> jax.Array:
        """Whether entries are missing now or were at an earlier step."""
        return self.needed > self.capacity

    def enlarged(self) -> Self:
        """Return a buffer with capacity for ``needed`` entries, on the host; its contents are not valid."""
        return self.resized(larger_capacity(int(jnp.max(self.needed)), self.capacity))

    def sized_like(self, example: Any) -> Self:
        """Return the same contents with the capacity of another buffer, on the host.

        Args:
            example: a buffer of the same kind, at least as large.
        """
        return self.resized(example.capacity)


def larger_capacity(needed: int, present: int) -> int:
    """Return the next capacity of an overflowed buffer, a multiple of 8.

    At least 10 % more than needed and 25 % more than the present one, since each capacity compiles a new program.

    Args:
        needed: number of entries needed.
        present: present capacity.
    """
    return -(-max(int(1.1 * needed), int(1.25 * present)) // 8) * 8


def overflow_of(tree: Any) -> jax.Array | None:
    """Return whether any buffer of a state has overflowed, boolean per member; ``None`` if there is no buffer.

    Args:
        tree: any pytree.
    """
    overflows = [buffer.overflowed for buffer in jax.tree.leaves(tree, is_leaf=_is_buffer) if _is_buffer(buffer)]
    return functools.reduce(operator.or_, overflows) if overflows else None


def enlarged(state: Any) -> Any:
    """Return a state whose overflowed buffers have capacity for what was needed, on the host; contents are not valid.

    Args:
        state: concrete state of one member or of many; buffers that did not overflow are unchanged.
    """

    def larger(part: Any) -> Any:
        return part.enlarged() if _is_buffer(part) and bool(jnp.any(part.overflowed)) else part

    return jax.tree.map(larger, state, is_leaf=_is_buffer)


def sized_like(state: Any, example: Any) -> Any:
    """Return the same state with the buffer capacities of another, on the host.

    Args:
        state: a state without overflow.
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
