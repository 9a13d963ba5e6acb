"""Segments and trajectories: many steps as one compiled scan, with bounded memory in reverse mode."""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from simkit.core.barrier import computed_once
from simkit.core.compilation import compiled
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import asked_at_every_step, status_of, stops

type Memory = Literal["balanced", "smallest"]

# Values that a step marks with this name are stored instead of recomputed in reverse mode: see `stored`.
STORED = "stored"
# Four children per level keep the deepest recursion short (log4 of the steps) and hold few states at each level.
SMALLEST_WIDTH = 4

# All states of a loop are held, at any width, if they take no more bytes than this: each level of rematerialization
# would compile the step once more (a third of the program) and run it once more, to save less than compiling takes.
# A `jax.vmap` around a derivative multiplies what is held: a thousand members hold a thousand times as much.
LITTLE = 1_200_000


def segment(simulation: Simulation, steps: int, *, width: int | None = None) -> Callable[[State, Params], State]:
    """Return ``(state, params) -> state`` that advances ``steps`` steps in one scan, as one compiled program.

    A simulation whose status stops it (`simkit.core.status.stops`) stays as it is from that step on, so the result
    does not depend on how a run is cut into segments. Where the status is asked
    at frames only (`simkit.core.status.asked_at_every_step`), every step is taken: what comes after numbers that are
    not finite is not finite either.

    Args:
        simulation: what to advance.
        steps: number of steps, a Python integer.
        width: how many states each level of rematerialization may hold in reverse mode; ``None`` holds about the
            square root of ``steps``.

    Raises:
        ValueError: if ``steps`` is negative.
    """
    if steps < 0:
        raise ValueError(f"steps = {steps} is negative")
    advance = _advance(simulation)

    def run(state: State, params: Params) -> State:
        def body(state: State) -> tuple[State, None]:
            return advance(state, params), None

        return _checkpointed_scan(body, state, steps, width or width_for(steps, "balanced"))[0]

    return compiled(run)


def trajectory(
    simulation: Simulation, steps: int, every: int, *, memory: Memory = "balanced"
) -> Callable[[Params, jax.Array], tuple[State, Arrays, Arrays]]:
    """Return ``(params, key) -> (state, frames, diagnostics)``, a whole run as one pure, compiled function.

    Frames and diagnostics are stacked along a leading axis of ``steps // every + 1``, the initial state first. In
    reverse mode each segment is recomputed instead of stored: memory grows like the square root of ``steps``
    (``"balanced"``, about two extra forward runs) or like its logarithm (``"smallest"``, one extra run per level).

    Args:
        simulation: what to run.
        steps: total number of steps, a multiple of ``every``.
        every: steps between frames.
        memory: ``"balanced"`` or ``"smallest"``.

    Raises:
        ValueError: if ``steps`` is not a positive multiple of ``every``.
    """
    record = recorded(simulation, steps, every, memory=memory)

    def run(params: Params, key: jax.Array) -> tuple[State, Arrays, Arrays]:
        state, found = record(params, key)
        return state, found.observed, found.diagnosed

    return compiled(run)


def recorded(
    simulation: Simulation, steps: int, every: int, *, memory: Memory = "balanced"
) -> "Callable[[Params, jax.Array], tuple[State, Frames]]":
    """Return ``(params, key) -> (state, Frames)``, a whole run likewise, with the status of every frame.

    Args:
        simulation: what to run.
        steps: total number of steps, a multiple of ``every``.
        every: steps between frames.
        memory: as for `trajectory`.

    Raises:
        ValueError: if ``steps`` is not a positive multiple of ``every``.
    """
    if every < 1 or steps < every or steps % every:
        raise ValueError(f"steps = {steps} is not a positive multiple of every = {every}")
    record, status = frames(simulation, every, steps // every, width=width_for(steps, memory)), status_of(simulation)

    def run(params: Params, key: jax.Array) -> tuple[State, Frames]:
        start = initial(simulation)(params, key)
        observed, diagnosed = simulation.observe(start, params), simulation.diagnose(start, params)
        first = Frames(observed=observed, diagnosed=diagnosed, status=status(start, params))
        state, rest = record(start, params)
        return state, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    return compiled(run)


def initial(simulation: Simulation) -> Callable[[Params, jax.Array], State]:
    """Return ``(params, key) -> state``, the initial state to the same last bit in every program that asks for it.

    Args:
        simulation: whose.
    """

    def run(params: Params, key: jax.Array) -> State:
        # Fused with what follows in one program or another, the same numbers would be rounded in different ways.
        params, key = computed_once((params, key))
        return computed_once(simulation.init(params, key))

    return run


@pytree
class Frames:
    """What a run stores, each stacked along a leading frame axis.

    Attributes:
        observed: what ``observe`` returns.
        diagnosed: what ``diagnose`` returns.
        status: int32 codes of `simkit.core.status.Status`.
    """

    observed: Arrays
    diagnosed: Arrays
    status: jax.Array

    @property
    def stored(self) -> jax.Array:
        """Which frames a run stores, ``(frames,)`` booleans: all but those that repeat the one in which it stopped."""
        ended = stops(self.status)
        ended = jnp.all(ended, axis=tuple(range(1, ended.ndim)))
        return jnp.cumsum(ended) - ended == 0


def frames(
    simulation: Simulation, every: int, count: int, *, width: int | None = None
) -> Callable[[State, Params], tuple[State, Frames]]:
    """Return ``(state, params) -> (state, Frames)`` that takes ``count`` frames, ``every`` steps apart.

    Args:
        simulation: what to advance.
        every: steps before each frame.
        count: number of frames.
        width: as for `segment`.
    """
    record = frame(simulation, every, width=width)

    def run(state: State, params: Params) -> tuple[State, Frames]:
        def body(state: State) -> tuple[State, Frames]:
            return record(state, params)

        return _checkpointed_scan(body, state, count, width or width_for(count, "balanced"))

    return run


def frame(
    simulation: Simulation, every: int, *, width: int | None = None
) -> Callable[[State, Params], tuple[State, Frames]]:
    """Return ``(state, params) -> (state, Frames)`` that advances to the next frame and takes it (without an axis).

    Args:
        simulation: what to advance.
        every: steps before the frame.
        width: as for `segment`.
    """
    advance, status = segment(simulation, every, width=width), status_of(simulation)

    def run(state: State, params: Params) -> tuple[State, Frames]:
        state = advance(state, params)
        observed, diagnosed = simulation.observe(state, params), simulation.diagnose(state, params)
        return state, Frames(observed=observed, diagnosed=diagnosed, status=status(state, params))

    return run


def _advance(simulation: Simulation) -> Callable[[State, Params], State]:
    if not asked_at_every_step(simulation):
        return simulation.step
    status = status_of(simulation)

    def advance(state: State, params: Params) -> State:
        # Of an ensemble, whose step leaves alone the members that stopped, until all have.
        stopped = jnp.all(stops(status(state, params)))
        return jax.lax.cond(stopped, lambda state, _: state, simulation.step, state, params)

    return advance


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


def width_for(steps: int, memory: Memory) -> int:
    """Return how many states each level of rematerialization holds.

    Args:
        steps: number of steps in all.
        memory: ``"balanced"`` holds about the square root of ``steps``, ``"smallest"`` a constant number.
    """
    if memory == "smallest":
        return SMALLEST_WIDTH
    if memory != "balanced":
        raise ValueError(f"memory = {memory!r} is unknown; choose 'balanced' or 'smallest'")
    # A divisor near the square root leaves no remainder to compile apart.
    root = max(math.isqrt(max(steps - 1, 0)) + 1, 2)
    return next((width for width in range(root, 2 * root + 1) if steps % width == 0), root)


def size_in_bytes(tree: Any) -> int:
    """Return how much memory the arrays of a tree take, in bytes.

    Args:
        tree: of arrays or of their shapes.
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _checkpointed_scan[Carry, Y](
    body: Callable[[Carry], tuple[Carry, Y]], carry: Carry, length: int, width: int
) -> tuple[Carry, Y]:
    """Scan ``body`` ``length`` times, holding at most ``width`` carries per level of recursion in reverse mode.

    Nested rematerialization after Griewank, Optimization Methods and Software 1, 35 (1992),
    doi:10.1080/10556789208805505, with a fixed fan-out so that every level is one scan.
    """

    def scan[C, R](inner: Callable[[C], tuple[C, R]], carry: C, length: int) -> tuple[C, R]:
        checkpointed = jax.checkpoint(inner, prevent_cse=False)
        return jax.lax.scan(lambda carry, _: checkpointed(carry), carry, None, length=length)

    if length <= width or length * size_in_bytes(carry) <= LITTLE:
        return jax.lax.scan(lambda carry, _: recomputed(body)(carry), carry, None, length=length)
    # Powers of the fan-out nest exactly, so only the top level leaves a remainder and the program stays small.
    chunk = width
    while chunk * width < length:
        chunk *= width
    count = length // chunk
    carry, head = scan(lambda carry: _checkpointed_scan(body, carry, chunk, width), carry, count)
    head = jax.tree.map(lambda y: y.reshape((count * chunk, *y.shape[2:])), head)
    if count * chunk == length:
        return carry, head
    carry, tail = _checkpointed_scan(body, carry, length - count * chunk, width)
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), head, tail)
