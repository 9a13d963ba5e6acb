"""Segments and trajectories: many steps as one compiled scan, with bounded memory in reverse mode."""

import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from simkit.core.compilation import compiled
from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree, size_in_bytes
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import checks_every_step, status_of, stops

type Memory = Literal["balanced", "smallest"] | int
"""States stored: about the square root of their number, a constant number per level, or a number of bytes."""
# Name of values that reverse mode stores instead of recomputing, see `stored`.
STORED = "stored"
# Four children per level keep the deepest recursion short (log4 of the steps) and hold few states at each level.
SMALLEST_WIDTH = 4
# Number of steps of which nested loops store hardly fewer states, while they compile the step twice.
SHORT_LOOP = 8
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
        memory: ``"balanced"`` stores about the square root of ``steps``, or all of up to `SHORT_LOOP`; ``"smallest"`` a
            constant number.

    Raises:
        ValueError: if ``memory`` is neither.
    """
    if memory == "smallest":
        return SMALLEST_WIDTH
    if memory != "balanced":
        raise ValueError(f"memory = {memory!r} is unknown; choose 'balanced', 'smallest' or a number of bytes")
    if steps <= SHORT_LOOP:
        return max(steps, 2)
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
    costs = [_levels_and_states(length, width, size) for length in loops if length > 1]
    # The loop over the steps of a frame is recomputed with each iteration of the loop over frames, so levels add up.
    return Nesting(width, sum(levels for levels, _ in costs) + 1, sum(states for _, states in costs))


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


def segment(simulation: Simulation, steps: int, *, width: int | None = None) -> Callable[[State, Params], State]:
    """Return ``(state, params) -> state`` that advances ``steps`` steps in one scan, as one compiled program.

    After a step whose status stops the simulation (`simkit.core.status.stops`) the state does not change, so the result
    does not depend on how a run is divided into segments. Where the status is evaluated at frames only
    (`simkit.core.status.checks_every_step`), every step is taken: a state that is not finite stays so.

    Args:
        simulation: simulation to advance.
        steps: number of steps, a Python integer.
        width: largest number of states stored per level of rematerialization in reverse mode; ``None`` stores about
            the square root of ``steps``.

    Raises:
        ValueError: if ``steps`` is negative.

    Example:
        >>> ball = rigid.bouncing_ball()
        >>> advance = simkit.segment(ball, 10)
        >>> start = ball.init(ball.params, jax.random.key(0))
        >>> print(f"{advance(start, ball.params).time:.2f}")
        0.10
    """
    steps = operator.index(steps)  # a JAX scalar would be traced where the run is compiled
    if steps < 0:
        raise ValueError(f"steps = {steps} is negative")
    advance = _advance(simulation)

    def run(state: State, params: Params) -> State:
        def body(state: State) -> tuple[State, None]:
            return advance(state, params), None

        return checkpointed_scan(body, state, steps, width or width_for(steps, "balanced"))[0]

    return compiled(run)


def trajectory(
    simulation: Simulation, steps: int, every: int, *, memory: Memory = "balanced"
) -> Callable[[Params, jax.Array], tuple[State, Arrays, Arrays]]:
    """Return ``(params, key) -> (state, frames, diagnostics)``, a whole run as one pure, compiled function.

    Frames and diagnostics are stacked along a leading axis of ``steps // every + 1``, the initial state first. In
    reverse mode each segment is recomputed instead of stored: memory grows like the square root of ``steps``
    (``"balanced"``, about two extra forward runs), like its logarithm (``"smallest"``, one extra run per level), or
    stays within a number of bytes of states, with as few extra runs as that allows.

    Args:
        simulation: simulation to run.
        steps: total number of steps, a multiple of ``every``.
        every: steps between frames.
        memory: ``"balanced"``, ``"smallest"``, or a number of bytes.

    Raises:
        ValueError: if ``steps`` is not a positive multiple of ``every``.

    Example:
        >>> ball = rigid.bouncing_ball()
        >>> run = jax.jit(simkit.trajectory(ball, steps=100, every=50))
        >>> state, frames, diagnostics = run(ball.params, jax.random.key(0))
        >>> print(diagnostics["time"], frames["position"].shape)
        [0.  0.5 1. ] (3, 1, 3)
    """
    record = recorded(simulation, steps, every, memory=memory)

    def run(params: Params, key: jax.Array) -> tuple[State, Arrays, Arrays]:
        state, frames = record(params, key)
        return state, frames.observed, frames.diagnosed

    return compiled(run)


def recorded(
    simulation: Simulation, steps: int, every: int, *, memory: Memory = "balanced"
) -> "Callable[[Params, jax.Array], tuple[State, Frames]]":
    """Return ``(params, key) -> (state, Frames)``, like `trajectory` with the status of every frame.

    Args:
        simulation: simulation to run.
        steps: total number of steps, a multiple of ``every``.
        every: steps between frames.
        memory: as for `trajectory`.

    Raises:
        ValueError: if ``steps`` is not a positive multiple of ``every``.
    """
    steps, every = operator.index(steps), operator.index(every)
    if every < 1 or steps < every or steps % every:
        raise ValueError(f"steps = {steps} is not a positive multiple of every = {every}")
    if isinstance(memory, str):
        width_for(steps, memory)  # refuses an unknown name here instead of when the run is traced
    count = steps // every

    def run(params: Params, key: jax.Array) -> tuple[State, Frames]:
        start = initial(simulation)(params, key)
        advance = frames(simulation, every, count, width=width_of((count, every), size_in_bytes(start), memory))
        first = recorded_frame(simulation)(start, params)
        state, rest = advance(start, params)
        return state, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    return compiled(run)


def initial(simulation: Simulation) -> Callable[[Params, jax.Array], State]:
    """Return ``(params, key) -> state``, the initial state with the same bits in every program that computes it.

    Args:
        simulation: simulation with the ``init`` to call.
    """

    def run(params: Params, key: jax.Array) -> State:
        # Without barriers, ``init`` is fused with different operations in different programs and rounded differently.
        params, key = computed_once((params, key))
        return computed_once(simulation.init(params, key))

    return run


@pytree
class Frames:
    """Frames of a run, stacked along a leading frame axis.

    Attributes:
        observed: results of ``observe``.
        diagnosed: results of ``diagnose``.
        status: int32 codes of `simkit.core.status.Status`.
    """

    observed: Arrays
    diagnosed: Arrays
    status: jax.Array

    @property
    def named(self) -> Arrays:
        """Their arrays without the status, ``{"observed.NAME" | "diagnosed.NAME": array}``."""
        groups = {"observed": self.observed, "diagnosed": self.diagnosed}
        return {f"{group}.{name}": array for group, arrays in groups.items() for name, array in arrays.items()}

    @property
    def stored(self) -> jax.Array:
        """Frames that a stored run holds, ``(frames,)`` booleans; False for those after the frame in which it stops."""
        ended = stops(self.status)
        ended = jnp.all(ended, axis=tuple(range(1, ended.ndim)))
        return jnp.cumsum(ended) - ended == 0


def frames(
    simulation: Simulation, every: int, count: int, *, width: int | None = None
) -> Callable[[State, Params], tuple[State, Frames]]:
    """Return ``(state, params) -> (state, Frames)`` that computes ``count`` frames, ``every`` steps apart.

    Args:
        simulation: simulation to advance.
        every: steps before each frame.
        count: number of frames.
        width: as for `segment`.
    """
    record = frame(simulation, every, width=width)

    def run(state: State, params: Params) -> tuple[State, Frames]:
        def body(state: State) -> tuple[State, Frames]:
            return record(state, params)

        return checkpointed_scan(body, state, count, width or width_for(count, "balanced"))

    return run


def frame(
    simulation: Simulation, every: int, *, width: int | None = None
) -> Callable[[State, Params], tuple[State, Frames]]:
    """Return ``(state, params) -> (state, Frames)`` that advances to the next frame (a single one, no frame axis).

    Args:
        simulation: simulation to advance.
        every: steps before the frame.
        width: as for `segment`.
    """
    advance, record = segment(simulation, every, width=width), recorded_frame(simulation)

    def run(state: State, params: Params) -> tuple[State, Frames]:
        # The host loop has a branch here, beyond which nothing is fused; without the barrier a frame after a single
        # step would be rounded otherwise than there.
        state = computed_once(advance(state, params))
        return state, record(state, params)

    return run


def recorded_frame(simulation: Simulation) -> Callable[[State, Params], Frames]:
    """Return ``(state, params) -> Frames``, the frame of a state (a single one, no frame axis).

    Args:
        simulation: simulation of the state.
    """
    status = status_of(simulation)

    def record(state: State, params: Params) -> Frames:
        # One barrier for both: what depends on params alone is otherwise computed, and rounded, outside of some loops.
        state, params = computed_once((state, params))
        observed, diagnosed = simulation.observe(state, params), simulation.diagnose(state, params)
        return Frames(observed=observed, diagnosed=diagnosed, status=status(state, params))

    return record


def _advance(simulation: Simulation) -> Callable[[State, Params], State]:
    if not checks_every_step(simulation):
        return simulation.step
    status = status_of(simulation)

    def advance(state: State, params: Params) -> State:
        # An ensemble has one status per member; its own step leaves stopped members unchanged until all have stopped.
        stopped = jnp.all(stops(status(state, params)))
        return jax.lax.cond(stopped, lambda state, _: state, simulation.step, state, params)

    return advance
