"""Brownian dynamics: overdamped particles in a bath of constant temperature."""

import dataclasses
from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params, Simulation
from simkit.molecular.dynamics.method import (
    Bath,
    DynamicsState,
    Evaluate,
    Method,
    Options,
    Schedule,
    check_given,
    scheduled,
)
from simkit.molecular.dynamics.motion import motion
from simkit.molecular.dynamics.splitting import key_of_step, seed
from simkit.molecular.interactions.interaction import Interaction


@part(
    values={"friction": formula("friction of the bath", unit="1 / time", bounds=POSITIVE)},
    excludes={"barostat": "which moves the cell by velocities, and overdamped particles have none"},
)
def brownian(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    temperature: Schedule | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return Brownian dynamics, ``m gamma x' = F(x) + sqrt(2 m gamma T) white noise``.

        x += h / (m gamma) F(x) + sqrt(h T / (2 m gamma)) (R + R')

    where R' are new normal deviates and R those of the step before. It is the limit of Langevin dynamics at large
    friction, and samples positions from the canonical distribution at temperature T (k_B = 1): averages are of second
    order in h, and exact for harmonic forces at any stable time step. A free particle has the diffusion coefficient
    ``T / (m gamma)``. The velocity in the state, ``sqrt(T / m) R'``, is thermal motion at temperature T, and not the
    rate of change of positions.

    Parameters: ``time_step`` h; ``temperature`` T, energy; ``friction`` gamma, 1 / time; ``mass``, unless given
    otherwise, of which ``m gamma`` alone matters. Good time steps: below ``m gamma / 2`` over the largest stiffness.

    Args:
        interaction: energy of the particles.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        temperature: T as ``(params, time) -> number``, not negative; ``None`` for the parameter.
        **options: ``cell``, ``mass``, ``velocity``, ``frozen``, ``observe``, ``measure`` and ``dimensions``, see
            `simkit.molecular.dynamics.motion.motion`.

    Raises:
        UserError: if a parameter is missing, or an argument contradicts another.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> params = {"time_step": 0.5, "mass": 1.0, "temperature": 2.0, "friction": 1.0}
        >>> cloud = molecular.dynamics.brownian(spring, lambda params, key: jnp.zeros((4000, 2)), params=params)
        >>> run = simkit.run(cloud, steps=50, every=50)
        >>> print(f"<x^2> = {float((run['position'][-1] ** 2).mean()):.1f} = temperature / stiffness")
        <x^2> = 2.0 = temperature / stiffness

    Reference: Leimkuhler, Matthews, Appl. Math. Res. Express 2013, 34 (2013), doi:10.1093/amrx/abs010.
    """
    schedule = scheduled("temperature", temperature, params)
    check_given(params, ["friction"])

    def advance(state: DynamicsState, params: Params, mass: jax.Array, evaluate: Evaluate) -> DynamicsState:
        # A step of BAOAB without memory of the velocity, of this length, displaces the particles alike.
        length = inertial_step(params)
        time = (state.iteration + 0.5).astype(length.dtype) * params["time_step"]
        kicks = jax.random.normal(key_of_step(state.bath, state.iteration), state.velocity.shape, length.dtype)
        velocity = jnp.sqrt(schedule(params, time)) / jnp.sqrt(mass) * kicks
        drift = params["time_step"] / (mass * params["friction"]) * state.force
        position = state.position + drift + length / 2 * (state.velocity + velocity)
        force, neighbors = evaluate(position, state.neighbors)
        return dataclasses.replace(state, position=position, velocity=velocity, force=force, neighbors=neighbors)

    method = Method(start=seed, advance=advance, inertial_step=inertial_step, bath=Bath(schedule))
    return motion(interaction, start, method, params=params, isolated=False, temperature=temperature, **options)


def inertial_step(params: Params) -> jax.Array:
    """Return the time step of Newtonian motion with the same displacement by forces, ``sqrt(2 h / gamma)``.

    Args:
        params: with ``time_step`` and ``friction``.
    """
    return jnp.sqrt(2 * params["time_step"] / params["friction"])
