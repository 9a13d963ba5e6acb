"""Langevin dynamics by the BAOAB splitting: particles in a bath of constant temperature."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.molecular.dynamics.motion import Measure, motion
from simkit.molecular.dynamics.protocol import DynamicsState, Evaluate, Method
from simkit.molecular.interactions.interaction import Interaction


def langevin(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    cell: Callable[[Params], jax.Array] | None = None,
    mass: Callable[[Params], jax.Array] | None = None,
    velocity: Callable[[Params, jax.Array], jax.Array] | None = None,
    observe: Measure | None = None,
    measure: Measure | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return Langevin dynamics, ``m x'' = F(x) - m gamma x' + sqrt(2 m gamma T) white noise``.

        B: v += h/2 F(x)/m    A: x += h/2 v    O: v = c v + sqrt((1 - c^2) T/m) N(0, 1)    A    B

    with ``c = exp(-gamma h)``. It samples the canonical distribution at temperature T (k_B = 1); averages of the
    positions are exact for harmonic forces at any stable time step, and better than those of the velocities
    otherwise. Without friction it is velocity Verlet.

    Parameters: ``time_step`` h; ``temperature`` T, energy; ``friction`` gamma, 1 / time; ``mass``, unless given
    otherwise. Good values: time steps as for velocity Verlet; a friction of 0.1 to 1 in units of a typical frequency.
    The derivative with respect to a friction or temperature of zero is infinite, as that of a square root is.

    Args:
        interaction: what acts between the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        cell: ``params -> cell``; ``None`` for free space.
        mass: ``params -> mass``, scalar or (N,).
        velocity: ``(params, key) -> velocity`` at the start, (N, d).
        observe: ``(state, cell, params) -> arrays``.
        measure: ``(state, cell, params) -> scalars``; these as for `simkit.molecular.dynamics.motion.motion`.
        dimensions: the dimension names of what ``observe`` returns.

    Raises:
        UserError: if a parameter is missing.

    Reference: Leimkuhler, Matthews, J. Chem. Phys. 138, 174102 (2013), doi:10.1063/1.4802990.
    """
    for name in ("temperature", "friction"):
        if name not in params:
            raise UserError(f"params lack '{name}'; there are {', '.join(sorted(params)) or 'none'}")
    return motion(
        interaction,
        start,
        Method(start=_seed, advance=_advance),
        params=params,
        isolated=False,
        cell=cell,
        mass=mass,
        velocity=velocity,
        observe=observe,
        measure=measure,
        dimensions=dimensions,
    )


def _seed(params: Params, key: jax.Array) -> jax.Array:
    """Return the seed of all noise to come, (2,)."""
    del params
    return jax.random.bits(key, (2,), jnp.uint32)


def _advance(state: DynamicsState, params: Params, mass: jax.Array, evaluate: Evaluate) -> DynamicsState:
    step = params["time_step"]
    damping, noise = _friction(params)
    velocity = state.velocity + step / 2 * state.force / mass
    position = state.position + step / 2 * velocity
    key = jax.random.fold_in(jax.random.wrap_key_data(state.bath, impl="threefry2x32"), state.iteration)
    kicks = jax.random.normal(key, velocity.shape, velocity.dtype)
    velocity = damping * velocity + noise / jnp.sqrt(mass) * kicks
    position = position + step / 2 * velocity
    force, neighbors = evaluate(position, state.neighbors)
    velocity = velocity + step / 2 * force / mass
    return dataclasses.replace(state, position=position, velocity=velocity, force=force, neighbors=neighbors)


def _friction(params: Params) -> tuple[jax.Array, jax.Array]:
    """Return ``exp(-gamma h)`` and ``sqrt((1 - exp(-2 gamma h)) T)``."""
    step, friction = params["time_step"], params["friction"]
    decay = 2 * friction * step
    positive = jnp.where(decay > 0, decay, 1)
    share = jnp.where(decay > 0, -jnp.expm1(-positive) / positive, 1 - decay / 2)
    # Roots of friction and temperature taken apart: where one is zero, only its own derivative is infinite.
    noise = jnp.sqrt(friction) * jnp.sqrt(params["temperature"]) * jnp.sqrt(2 * step * share)
    return jnp.exp(-friction * step), noise
