"""Diagnostics of molecular dynamics: energies, temperature, pressure, momentum."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params
from simkit.molecular import spaces
from simkit.molecular.dynamics.protocol import DynamicsState
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import largest_norm
from simkit.molecular.spaces import Cell


def thermodynamics(
    interaction: Interaction,
    state: DynamicsState,
    cell: Cell,
    params: Params,
    mass: jax.Array,
    *,
    conserved: jax.Array,
    mobile: int | None = None,
) -> Arrays:
    """Return energies, temperature, momentum and, in a cell, the pressure at one instant.

        T = 2 K / f,    P = N T / V - tr(stress) / d

    with f = d N less one degree of freedom for each conserved component of the total momentum, and K the kinetic energy
    without the motion of the center of mass along these components. An isolated system has f = d (N - 1). The pressure
    counts all N particles: the center of mass contributes T / V on average. k_B = 1.

    Args:
        interaction: energy of the particles.
        state: with neighbors refreshed for these params.
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        mass: scalar or (N, 1).
        conserved: projection onto the directions along which the total momentum is conserved, (d, d), as from
            `simkit.molecular.dynamics.conserved.conserved_directions`; zero in a bath.
        mobile: N, number of particles that are not frozen; ``None`` for all.

    Returns:
        Scalars ``kinetic_energy``, ``potential_energy``, ``potential_energy_per_particle``, ``energy``,
        ``temperature``, ``momentum`` (its length) and ``pressure``.
    """
    count, dimension = state.velocity.shape
    kinetic = kinetic_energy(state.velocity, mass)
    potential = interaction.energy(state.position, cell, params, state.neighbors)
    thermal = kinetic_energy(without_drift(state.velocity, mass, conserved), mass)
    mobile = count if mobile is None else mobile
    temperature = 2 * thermal / (dimension * mobile - jnp.trace(conserved))
    numbers = {
        "kinetic_energy": kinetic,
        "potential_energy": potential,
        "potential_energy_per_particle": potential / count,
        "energy": kinetic + potential,
        "temperature": temperature,
        "momentum": largest_norm(momentum(state.velocity, mass)[None]),
    }
    if cell is not None:
        volume = spaces.of_cell(cell, dimension).volume
        stress = interaction.stress(state.position, cell, params, state.neighbors)
        numbers["pressure"] = mobile * temperature / volume - jnp.trace(stress) / dimension
    return numbers


def momentum(velocity: jax.Array, mass: jax.Array) -> jax.Array:
    """Return the total momentum, ``sum_i m_i v_i``, (d,).

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
    """
    return jnp.sum(mass * velocity, axis=0)


def center_of_mass_velocity(velocity: jax.Array, mass: jax.Array) -> jax.Array:
    """Return the total momentum over the total mass, (d,).

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
    """
    return momentum(velocity, mass) / jnp.sum(jnp.broadcast_to(mass, (len(velocity), 1)))


def without_drift(velocity: jax.Array, mass: jax.Array, directions: jax.Array) -> jax.Array:
    """Return velocities without the components of the center-of-mass velocity along some directions, (N, d).

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
        directions: projection onto the directions, (d, d).
    """
    # Written out: a matrix product may run in reduced precision on an accelerator.
    return velocity - jnp.sum(directions * center_of_mass_velocity(velocity, mass), axis=1)


def thermal_velocity(velocity: jax.Array, mass: jax.Array, conserved: jax.Array | None) -> jax.Array:
    """Return velocities without the motion of the center of mass that the conserved momentum fixes, (N, d).

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
        conserved: as for `simkit.molecular.dynamics.protocol.Freedom`.
    """
    return velocity if conserved is None else without_drift(velocity, mass, conserved)


def kinetic_energy(velocity: jax.Array, mass: jax.Array) -> jax.Array:
    """Return ``sum_i m_i v_i^2 / 2``.

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
    """
    return jnp.sum(mass * velocity**2) / 2
