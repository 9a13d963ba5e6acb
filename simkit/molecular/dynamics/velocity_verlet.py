"""Velocity Verlet: Newton's equations at constant energy."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax

from simkit.core.simulation import Params, Simulation
from simkit.molecular.dynamics.motion import Measure, motion
from simkit.molecular.dynamics.protocol import DynamicsState, Evaluate, Method
from simkit.molecular.interactions.interaction import Interaction


def velocity_verlet(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    isolated: bool = True,
    cell: Callable[[Params], jax.Array] | None = None,
    mass: Callable[[Params], jax.Array] | None = None,
    velocity: Callable[[Params, jax.Array], jax.Array] | None = None,
    observe: Measure | None = None,
    measure: Measure | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return Newtonian dynamics, ``m x'' = F(x)``, at constant energy.

        v += h/2 F(x)/m,   x += h v,   v += h/2 F(x)/m

    Of second order, symplectic, reversible in time: the energy oscillates by ``O(h^2)`` and does not drift.

    Parameters: ``time_step`` h; ``mass``, unless given otherwise; ``temperature`` of the velocities at the start,
    unless those are given. Good time steps: a fiftieth of the fastest period; 0.005 sigma sqrt(mass / epsilon) in a
    Lennard-Jones liquid.

    Args:
        interaction: what acts between the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        isolated: whether the conserved momentum is set apart, see `simkit.molecular.dynamics.motion.motion`; as are the
            others.
        cell: ``params -> cell``; ``None`` for free space.
        mass: ``params -> mass``, scalar or (N,).
        velocity: ``(params, key) -> velocity`` at the start, (N, d).
        observe: ``(state, cell, params) -> arrays``.
        measure: ``(state, cell, params) -> scalars``.
        dimensions: the dimension names of what ``observe`` returns.

    Raises:
        UserError: if a parameter is missing.

    Reference: Swope, Andersen, Berens, Wilson, J. Chem. Phys. 76, 637 (1982), doi:10.1063/1.442716.
    """
    return motion(
        interaction,
        start,
        Method(start=lambda params, key: (), advance=_advance),
        params=params,
        isolated=isolated,
        cell=cell,
        mass=mass,
        velocity=velocity,
        observe=observe,
        measure=measure,
        dimensions=dimensions,
    )


def _advance(state: DynamicsState, params: Params, mass: jax.Array, evaluate: Evaluate) -> DynamicsState:
    step = params["time_step"]
    velocity = state.velocity + step / 2 * state.force / mass
    position = state.position + step * velocity
    force, neighbors = evaluate(position, state.neighbors)
    velocity = velocity + step / 2 * force / mass
    return dataclasses.replace(state, position=position, velocity=velocity, force=force, neighbors=neighbors)
