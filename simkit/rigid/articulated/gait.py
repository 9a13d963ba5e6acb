"""Gaits of mechanisms with events: fixed points of the map from one impact to a later one, and their multipliers."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Simulation
from simkit.errors import UserError

# Relative change of a step of Newton's method at which it has converged, as a power of the precision.
CONVERGED = 0.6


@dataclasses.dataclass(frozen=True)
class Gait:
    """A periodic motion.

    Attributes:
        point: its point on the section, (d,).
        multipliers: eigenvalues of the derivative of the map there, those of Floquet, (d,); complex.
        derivative: of the map, (d, d).
        period: time in s.
    """

    point: np.ndarray
    multipliers: np.ndarray
    derivative: np.ndarray
    period: float


def stride(
    simulation: Simulation,
    chart: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    section: Callable[[jax.Array, jax.Array], jax.Array],
    params: Mapping[str, Any],
    steps: int,
    impacts: int = 1,
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Return the map ``point -> (point, time)`` from just after an impact to just after a later one; NaN if none came.

    Args:
        simulation: by `simkit.rigid.mjcf` with ``events``.
        chart: ``point (d,) -> (position, velocity)``, coordinates and velocities just after an impact.
        section: ``(position, velocity) -> point``, its inverse, which may swap legs.
        params: of the simulation.
        steps: time steps within which the impact comes.
        impacts: number of impacts of a stride.
    """
    key = jax.random.key(0)

    def mapped(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        position, velocity = chart(point)
        values = {**params, "initial_position": position, "initial_velocity": velocity}

        def step(now: Any, _: None) -> tuple[Any, None]:
            state, time = now
            later = simulation.step(state, values)
            runs = state.memory.impacts < impacts
            arrives = runs & (later.memory.impacts >= impacts)
            time = jnp.where(arrives, later.time - later.memory.since, time)
            return (jax.tree.map(lambda a, b: jnp.where(runs, a, b), later, state), time), None

        start = simulation.init(values, key)
        (state, time), _ = jax.lax.scan(step, (start, jnp.full_like(start.time, jnp.nan)), length=steps)
        reached = state.memory.impacts >= impacts
        after = section(state.memory.struck_position, state.memory.struck_velocity)
        return jnp.where(reached, after, jnp.nan), time

    return mapped


def gait(
    simulation: Simulation,
    chart: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    section: Callable[[jax.Array, jax.Array], jax.Array],
    guess: Any,
    params: Mapping[str, Any],
    *,
    steps: int,
    impacts: int = 1,
    iterations: int = 20,
) -> Gait:
    """Return a periodic motion, found by Newton's method with the derivative through the impact.

    Args:
        simulation: as for `stride`, and so are the next two.
        chart: ``point (d,) -> (position, velocity)``.
        section: ``(position, velocity) -> point``.
        guess: point near the fixed one, (d,).
        params: of the simulation.
        steps: time steps within which a stride ends.
        impacts: number of impacts of a stride.
        iterations: of Newton's method, at most.

    Raises:
        UserError: if a stride does not end, or the iterations do not converge.
    """
    mapped = stride(simulation, chart, section, params, steps, impacts)

    def with_value(point: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        after, time = mapped(point)
        return after, (after, time)

    derivative_of = jax.jit(jax.jacfwd(with_value, has_aux=True))
    point = jnp.asarray(guess, simulation.params["time_step"].dtype)
    one = np.eye(len(point))
    for _ in range(iterations):
        derivative, (after, time) = derivative_of(point)
        if not np.isfinite(after).all():
            raise UserError(
                f"no impact ends the stride from {np.asarray(point)}: the mechanism falls, or needs more than "
                f"{steps} steps; give another guess, or more steps"
            )
        change = np.linalg.solve(one - np.asarray(derivative), np.asarray(after - point))
        point = point + change
        if np.max(np.abs(change)) <= np.finfo(point.dtype).eps ** CONVERGED * (1 + np.max(np.abs(point))):
            derivative, (_, time) = derivative_of(point)
            found = np.asarray(derivative)
            return Gait(np.asarray(point), np.linalg.eigvals(found), found, float(time))
    raise UserError(f"no gait after {iterations} iterations near {np.asarray(guess)}; give a nearer guess")
