"""Rematerialization: which states of a loop reverse mode stores and which it recomputes."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from simkit.core.pytree import size_in_bytes

type Memory = Literal["balanced", "smallest"] | int
"""States stored: about the square root of their number, a constant number per level, or a number of bytes."""

# Name of values that reverse mode stores instead of recomputing, see `stored`.
STORED = "stored"
# Four children per level keep the deepest recursion short (log4 of the steps) and hold few states at each level.
SMALLEST_WIDTH = 4

# Bytes of states up to which a loop stores all of them: a level of rematerialization compiles the step once more (a
# third of the program) and runs it once more. The size is that of one member; `jax.vmap` around a derivative multiplies
# it by the number of members.
SMALL_BYTES = 1_200_000


@dataclasses.dataclass(frozen=True)
class Nesting:
    """Rematerialization of nested loops.

    Attributes:
        width: largest number of states stored per level.
        levels: how often each step is computed in all, besides its derivative.
        states: largest number of states stored at once.
    """

    width: int
    levels: int
    states: int


def checkpointed_scan[Carry, Y](
    body: Callable[[Carry], tuple[Carry, Y]], carry: Carry, length: int, width: int
) -> tuple[Carry, Y]:
    """Scan ``body`` ``length`` times, storing at most ``width`` carries per level of recursion in reverse mode.

    Nested rematerialization after Griewank, Optimization Methods and Software 1, 35 (1992),
    doi:10.1080/10556789208805505, with a fixed fan-out so that every level is one scan.

    Args:
        body: ``carry -> (carry, y)``.
        carry: initial carry.
        length: number of iterations.
        width: see above.

    Returns:
        The last carry, and the stacked ``y`` of all iterations.
    """

    def scan[C, R](inner: Callable[[C], tuple[C, R]], carry: C, length: int) -> tuple[C, R]:
        checkpointed = jax.checkpoint(inner, prevent_cse=False)
        return jax.lax.scan(lambda carry, _: checkpointed(carry), carry, None, length=length)

    if _stores_all(length, width, size_in_bytes(carry)):
        return jax.lax.scan(lambda carry, _: recomputed(body)(carry), carry, None, length=length)
    inner, count = _split(length, width)
    carry, head = scan(lambda carry: checkpointed_scan(body, carry, inner, width), carry, count)
    head = jax.tree.map(lambda y: y.reshape((count * inner, *y.shape[2:])), head)
    if count * inner == length:
        return carry, head
    carry, tail = checkpointed_scan(body, carry, length - count * inner, width)
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), head, tail)


def _stores_all(length: int, width: int, size: int) -> bool:
    return length <= width or length * size <= SMALL_BYTES


def _split(length: int, width: int) -> tuple[int, int]:
    """Return the length of each inner loop, and the number of iterations of the outermost level."""
    # Powers of the fan-out nest exactly, so only the outermost level leaves a remainder and the program stays small.
    inner = width
    while inner * width < length:
        inner *= width
    return inner, length // inner


def stored[T](tree: T) -> T:
    """Return arrays unchanged, marked to be stored instead of recomputed in reverse mode.

    Mark values that are costly to compute but small, such as the result of a root search: they are saved as residuals
    at the innermost level of rematerialization.

    Args:
        tree: pytree of arrays.
    """
    return jax.tree.map(lambda array: checkpoint_name(array, STORED), tree)


def recomputed[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Return the same function, of which reverse mode stores only the arguments and values marked by `stored`.

    Args:
        function: function of arrays.
    """
    return jax.checkpoint(function, prevent_cse=False, policy=jax.checkpoint_policies.save_only_these_names(STORED))


def width_for(steps: int, memory: Literal["balanced", "smallest"]) -> int:
    """Return how many states each level of rematerialization stores.

    Args:
        steps: total number of steps.
        memory: ``"balanced"`` stores about the square root of ``steps``, ``"smallest"`` a constant number.

    Raises:
        ValueError: if ``memory`` is neither.
    """
    if memory == "smallest":
        return SMALLEST_WIDTH
    if memory != "balanced":
        raise ValueError(f"memory = {memory!r} is unknown; choose 'balanced', 'smallest' or a number of bytes")
    # A divisor near the square root leaves no remainder, which would be compiled separately.
    root = max(math.isqrt(max(steps - 1, 0)) + 1, 2)
    return next((width for width in range(root, 2 * root + 1) if steps % width == 0), root)


def width_of(loops: Sequence[int], size: int, memory: Memory) -> int:
    """Return how many states each level of rematerialization stores in nested loops.

    Args:
        loops: iteration counts of the loops, the outermost first.
        size: size of a state in bytes.
        memory: see `Memory`.

    Raises:
        ValueError: if ``memory`` is unknown.
    """
    if isinstance(memory, int):
        return nesting_within(loops, size, memory).width
    return width_for(math.prod(loops), memory)


def nesting_of(loops: Sequence[int], size: int, width: int) -> Nesting:
    """Return the nesting of loops with a given width.

    Args:
        loops: as for `width_of`.
        size: likewise.
        width: largest number of states stored per level.
    """
    found = [_levels_and_states(length, width, size) for length in loops if length > 1]
    # The loop over the steps of a frame is recomputed with each iteration of the loop over frames, so levels add up.
    return Nesting(width, sum(levels for levels, _ in found) + 1, sum(states for _, states in found))


def nesting_within(loops: Sequence[int], size: int, memory: int) -> Nesting:
    """Return the nesting with the fewest levels whose states fit in memory; if none fits, the smallest nesting.

    Args:
        loops: as for `width_of`.
        size: likewise.
        memory: largest size of all stored states in bytes.
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
            # The next width that leaves no remainder, which would be compiled separately.
            yield from [w for w in range(width, 2 * width) if length % w ** (levels - 1) == 0][:1]


def _levels_and_states(length: int, width: int, size: int) -> tuple[int, int]:
    """Return the number of levels and of stored states of one loop."""
    if _stores_all(length, width, size):
        return 1, length
    inner, count = _split(length, width)
    parts = [_levels_and_states(part, width, size) for part in (inner, length - count * inner) if part]
    return 1 + max(levels for levels, _ in parts), count + max(states for _, states in parts)
