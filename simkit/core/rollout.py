"""Segments and trajectories: many steps as one compiled scan, with bounded memory in reverse mode."""

import operator
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.compilation import compiled
from simkit.core.pytree import pytree, size_in_bytes
from simkit.core.rematerialization import Memory, checkpointed_scan, width_for, width_of
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import checks_every_step, status_of, stops


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
    """
    record = recorded(simulation, steps, every, memory=memory)

    def run(params: Params, key: jax.Array) -> tuple[State, Arrays, Arrays]:
        state, found = record(params, key)
        return state, found.observed, found.diagnosed

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
    advance, status = segment(simulation, every, width=width), status_of(simulation)

    def run(state: State, params: Params) -> tuple[State, Frames]:
        state = advance(state, params)
        observed, diagnosed = simulation.observe(state, params), simulation.diagnose(state, params)
        return state, Frames(observed=observed, diagnosed=diagnosed, status=status(state, params))

    return run


def _advance(simulation: Simulation) -> Callable[[State, Params], State]:
    if not checks_every_step(simulation):
        return simulation.step
    status = status_of(simulation)

    def advance(state: State, params: Params) -> State:
        # An ensemble has one status per member; its own step leaves stopped members unchanged until all have stopped.
        stopped = jnp.all(stops(status(state, params)))
        return jax.lax.cond(stopped, lambda state, _: state, simulation.step, state, params)

    return advance
