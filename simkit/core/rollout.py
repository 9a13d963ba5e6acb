"""Segments and trajectories: many steps as one compiled scan, with bounded memory in reverse mode."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.compilation import compiled
from simkit.core.pytree import pytree, size_in_bytes
from simkit.core.rematerialization import Memory, checkpointed_scan, width_for, width_of
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import asked_at_every_step, status_of, stops


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

        return checkpointed_scan(body, state, steps, width or width_for(steps, "balanced"))[0]

    return compiled(run)


def trajectory(
    simulation: Simulation, steps: int, every: int, *, memory: Memory = "balanced"
) -> Callable[[Params, jax.Array], tuple[State, Arrays, Arrays]]:
    """Return ``(params, key) -> (state, frames, diagnostics)``, a whole run as one pure, compiled function.

    Frames and diagnostics are stacked along a leading axis of ``steps // every + 1``, the initial state first. In
    reverse mode each segment is recomputed instead of stored: memory grows like the square root of ``steps``
    (``"balanced"``, about two extra forward runs) or like its logarithm (``"smallest"``, one extra run per level), or
    the states take no more than so many bytes, with as few extra runs as that allows.

    Args:
        simulation: what to run.
        steps: total number of steps, a multiple of ``every``.
        every: steps between frames.
        memory: ``"balanced"``, ``"smallest"``, or a number of bytes.

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
    if isinstance(memory, str):
        width_for(steps, memory)  # refused now and not when it is traced
    count, status = steps // every, status_of(simulation)

    def run(params: Params, key: jax.Array) -> tuple[State, Frames]:
        start = initial(simulation)(params, key)
        record = frames(simulation, every, count, width=width_of((count, every), size_in_bytes(start), memory))
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

        return checkpointed_scan(body, state, count, width or width_for(count, "balanced"))

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
