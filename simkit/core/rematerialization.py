"""Rematerialization: the states of a loop that reverse mode stores, and those that it recomputes."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from simkit.core.pytree import size_in_bytes

type Memory = Literal["balanced", "smallest"] | int
"""About the square root of the states, a constant number of them per level, or so many bytes of states."""

# Values that a step marks with this name are stored instead of recomputed in reverse mode: see `stored`.
STORED = "stored"
# Four children per level keep the deepest recursion short (log4 of the steps) and hold few states at each level.
SMALLEST_WIDTH = 4

# All states of a loop are held, at any width, if they take no more bytes than this: each level of rematerialization
# would compile the step once more (a third of the program) and run it once more, to save less than compiling takes.
# A `jax.vmap` around a derivative multiplies what is held: a thousand members hold a thousand times as much.
LITTLE = 1_200_000


@dataclasses.dataclass(frozen=True)
class Nesting:
    """How loops are cut for reverse mode.

    Attributes:
        width: how many states each level of rematerialization may hold.
        levels: how often every step is computed in all, besides its derivative.
        states: how many states are held at once, at most.
    """

    width: int
    levels: int
    states: int


def checkpointed_scan[Carry, Y](
    body: Callable[[Carry], tuple[Carry, Y]], carry: Carry, length: int, width: int
) -> tuple[Carry, Y]:
    """Scan ``body`` ``length`` times, holding at most ``width`` carries per level of recursion in reverse mode.

    Nested rematerialization after Griewank, Optimization Methods and Software 1, 35 (1992),
    doi:10.1080/10556789208805505, with a fixed fan-out so that every level is one scan.

    Args:
        body: ``carry -> (carry, y)``.
        carry: at the start.
        length: number of turns.
        width: see above.

    Returns:
        The last carry, and what the turns return, stacked.
    """

    def scan[C, R](inner: Callable[[C], tuple[C, R]], carry: C, length: int) -> tuple[C, R]:
        checkpointed = jax.checkpoint(inner, prevent_cse=False)
        return jax.lax.scan(lambda carry, _: checkpointed(carry), carry, None, length=length)

    if _held_whole(length, width, size_in_bytes(carry)):
        return jax.lax.scan(lambda carry, _: recomputed(body)(carry), carry, None, length=length)
    chunk, count = _cut(length, width)
    carry, head = scan(lambda carry: checkpointed_scan(body, carry, chunk, width), carry, count)
    head = jax.tree.map(lambda y: y.reshape((count * chunk, *y.shape[2:])), head)
    if count * chunk == length:
        return carry, head
    carry, tail = checkpointed_scan(body, carry, length - count * chunk, width)
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), head, tail)


def _held_whole(length: int, width: int, size: int) -> bool:
    return length <= width or length * size <= LITTLE


def _cut(length: int, width: int) -> tuple[int, int]:
    """Return the turns below each turn of the top level, and the turns of that level."""
    # Powers of the fan-out nest exactly, so only the top level leaves a remainder and the program stays small.
    chunk = width
    while chunk * width < length:
        chunk *= width
    return chunk, length // chunk


def stored[T](tree: T) -> T:
    """Return arrays as they are, marked to be stored and not recomputed in reverse mode.

    A step that marks what is long to compute and short to keep (the outcome of a search) is not searched again; the
    innermost level of rematerialization alone stores it.

    Args:
        tree: of arrays.
    """
    return jax.tree.map(lambda array: checkpoint_name(array, STORED), tree)


def recomputed[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Return the same function, of which reverse mode keeps its arguments and what is `stored`, and no more.

    Args:
        function: of arrays.
    """
    return jax.checkpoint(function, prevent_cse=False, policy=jax.checkpoint_policies.save_only_these_names(STORED))


def width_for(steps: int, memory: Literal["balanced", "smallest"]) -> int:
    """Return how many states each level of rematerialization holds.

    Args:
        steps: number of steps in all.
        memory: ``"balanced"`` holds about the square root of ``steps``, ``"smallest"`` a constant number.

    Raises:
        ValueError: if ``memory`` is neither.
    """
    if memory == "smallest":
        return SMALLEST_WIDTH
    if memory != "balanced":
        raise ValueError(f"memory = {memory!r} is unknown; choose 'balanced', 'smallest' or a number of bytes")
    # A divisor near the square root leaves no remainder to compile apart.
    root = max(math.isqrt(max(steps - 1, 0)) + 1, 2)
    return next((width for width in range(root, 2 * root + 1) if steps % width == 0), root)


def width_of(loops: Sequence[int], size: int, memory: Memory) -> int:
    """Return how many states each level of rematerialization holds in loops within one another.

    Args:
        loops: the turns of each, the outermost first.
        size: of a state, in bytes.
        memory: see `Memory`.

    Raises:
        ValueError: if ``memory`` is none.
    """
    if isinstance(memory, int):
        return nesting_within(loops, size, memory).width
    return width_for(math.prod(loops), memory)


def nesting_of(loops: Sequence[int], size: int, width: int) -> Nesting:
    """Return what a width comes to.

    Args:
        loops: as for `width_of`.
        size: likewise.
        width: how many states each level of rematerialization may hold.
    """
    found = [_nest(length, width, size) for length in loops if length > 1]
    # The steps within a frame belong to the turn of the loop around them, which computes them as often as it is run.
    return Nesting(width, sum(levels for levels, _ in found) + 1, sum(states for _, states in found))


def nesting_within(loops: Sequence[int], size: int, memory: int) -> Nesting:
    """Return the nesting that computes steps least often while its states fit in memory; if none fits, the smallest.

    Args:
        loops: as for `width_of`.
        size: likewise.
        memory: bytes that the states may take together.
    """
    candidates = [nesting_of(loops, size, width) for width in sorted(set(_widths(loops)))]
    fitting = [nesting for nesting in candidates if nesting.states * size <= memory]
    if not fitting:
        return min(candidates, key=lambda nesting: (nesting.states, nesting.levels))
    return min(fitting, key=lambda nesting: (nesting.levels, nesting.states))


def _widths(loops: Sequence[int]) -> Iterator[int]:
    yield SMALLEST_WIDTH
    for length in loops:
        width, levels = max(length, SMALLEST_WIDTH), 1
        while width > SMALLEST_WIDTH:
            yield width
            levels += 1
            width = max(math.ceil(length ** (1 / levels)), SMALLEST_WIDTH)
            # One that leaves no remainder, which would be compiled apart.
            yield from [w for w in range(width, 2 * width) if length % w ** (levels - 1) == 0][:1]


def _nest(length: int, width: int, size: int) -> tuple[int, int]:
    """Return levels and states of one loop."""
    if _held_whole(length, width, size):
        return 1, length
    chunk, count = _cut(length, width)
    parts = [_nest(part, width, size) for part in (chunk, length - count * chunk) if part]
    return 1 + max(levels for levels, _ in parts), count + max(states for _, states in parts)
