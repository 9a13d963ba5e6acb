"""Diagnostics of molecular dynamics, initial velocities, and the total momentum that an energy conserves."""

from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params
from simkit.molecular import spaces
from simkit.molecular.constraints.groups import Groups
from simkit.molecular.dynamics.method import DynamicsState
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.minimizers import largest_norm
from simkit.molecular.relaxation.equilibrium import ROUNDING, orthogonalized
from simkit.molecular.spaces import Cell


def thermodynamics(
    interaction: Interaction,
    state: DynamicsState,
    cell: Cell,
    params: Params,
    mass: jax.Array,
    *,
    kick: jax.Array | None,
    freedom: jax.Array,
    conserved: jax.Array,
    mobile: int,
    groups: Groups | None = None,
) -> Arrays:
    """Return energies, temperature, momentum and, in a cell, the pressure at one instant.

        T = 2 K / f,    K = sum m (v^2 + w^2) / 2,    w = h/2 F/m,    P = N T / V - tr(stress) / d

    with f = d N less one degree of freedom for each conserved component of the total momentum and each rigid bond, and
    v and w without the motion of the center of mass along these components, and without rates of rigid bonds. An
    isolated system has f = d (N - 1). The pressure counts all N particles: the center of mass contributes T / V on
    average. With rigid bonds, N is the number of groups of particles that these join, and the stress is that of a
    strain of the centers of mass of the groups alone (molecular virial), which the forces of rigid bonds do not enter.
    k_B = 1.

    K is the mean of the kinetic energies half a step before and after, v - w and v + w: a bath acts there. At the end
    of a step of velocity Verlet an oscillator of angular frequency omega is slower, by (omega h)^2 / 4 of its kinetic
    energy: SPC/E water in steps of 2 fs by 0.7 %. The diagnostic ``kinetic_energy`` is that at the end of the step,
    whose sum with the potential energy does not drift.

    Args:
        interaction: energy of the particles.
        state: with neighbors refreshed for these params.
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        mass: scalar or (N, 1).
        kick: w, (N, d); ``None`` for a method whose steps do not end with a kick.
        freedom: f.
        conserved: projection onto the directions along which the total momentum is conserved, (d, d), as from
            `simkit.molecular.dynamics.measures.conserved_directions`; zero in a bath.
        mobile: N, number of particles, or groups of them, that are not frozen.
        groups: particles joined by rigid bonds; ``None`` without such bonds.

    Returns:
        Scalars ``kinetic_energy``, ``potential_energy``, ``potential_energy_per_particle``, ``energy``,
        ``temperature``, ``momentum`` (its length) and ``pressure``.

    Reference: Jung, Kobayashi, Sugita, J. Chem. Phys. 148, 164109 (2018), doi:10.1063/1.5008438.
    """
    count, dimension = state.velocity.shape
    kinetic = kinetic_energy(state.velocity, mass)
    quantities: Quantities = ("energy",)
    if cell is not None:
        quantities = ("energy", "stress") if groups is None else ("energy", "stress", "force")
    potential, *others = interaction.several(quantities, state.position, cell, params, state.neighbors)
    thermal = kinetic_energy(without_drift(state.velocity, mass, conserved), mass)
    if kick is not None:
        thermal += kinetic_energy(without_drift(kick, mass, conserved), mass)
    temperature = 2 * thermal / freedom
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
        stress = others[0] if groups is None else groups.stress(others[0], state.position, others[1], volume)
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
        conserved: as for `simkit.molecular.dynamics.method.Freedom`.
    """
    return velocity if conserved is None else without_drift(velocity, mass, conserved)


def kinetic_energy(velocity: jax.Array, mass: jax.Array) -> jax.Array:
    """Return ``sum_i m_i v_i^2 / 2``.

    Args:
        velocity: (N, d).
        mass: scalar or (N, 1).
    """
    return jnp.sum(mass * velocity**2) / 2


def half_kick(force: jax.Array, mass: jax.Array, time_step: jax.Array) -> jax.Array:
    """Return the change of the velocities by the forces in half a step, ``w = h/2 F/m``, (N, d).

    Args:
        force: (N, d).
        mass: scalar or (N, 1).
        time_step: h, scalar.
    """
    return time_step / 2 * force / mass


def maxwell_boltzmann(
    key: jax.Array, temperature: jax.Array, mass: jax.Array, shape: tuple[int, ...], *, drift: bool
) -> jax.Array:
    """Draw velocities, each component normal with variance ``temperature / mass``.

    Args:
        key: random key.
        temperature: k_B T, energy, scalar.
        mass: scalar or (N, 1).
        shape: (N, d).
        drift: whether to keep the velocity of the center of mass; otherwise the total momentum is zero.

    Returns:
        Length / time, (N, d).

    Example:
        >>> v = molecular.dynamics.maxwell_boltzmann(jax.random.key(0), 2.0, 0.5, (10_000, 3), drift=False)
        >>> print(f"m <v^2> / 3 = {0.5 * float((v**2).mean()):.1f}, momentum {abs(float(v.mean())):.1f}")
        m <v^2> / 3 = 2.0, momentum 0.0
    """
    # Roots taken apart: where the temperature is zero, derivatives with respect to the mass are too.
    scale = jnp.sqrt(temperature) / jnp.sqrt(mass)
    velocity = scale * jax.random.normal(key, shape, scale.dtype)
    return velocity if drift else velocity - center_of_mass_velocity(velocity, mass)


# Distances by which all particles are moved to detect walls and grooves, in units of the size of the system:
# within it, and past a container three times as large. Irrational, so that no lattice is mapped onto itself.
PROBES = (-3.1416, -0.3820, 0.3820, 3.1416)


def conserved_directions(
    interaction: Interaction, position: jax.Array, cell: Cell, params: Params, neighbors: Any
) -> jax.Array:
    """Return the projection onto the directions along which the total momentum is conserved, (d, d).

    The momentum along u is conserved if the energy is unchanged when all particles move together along u. If the
    interaction is not translation invariant by construction, three conditions are tested: the sum of all forces along
    u vanishes, forces do not change to first order (a trap, a groove), nor when all particles are moved further (a wall
    that none touches yet).

    Args:
        interaction: energy of the particles.
        position: (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        neighbors: current at the position.

    Returns:
        A symmetric matrix, its trace the number of conserved components; without a derivative. Zero if a force is NaN.
    """
    count, dimension = position.shape
    identity = jnp.eye(dimension, dtype=position.dtype)
    if interaction.is_translation_invariant:
        return identity
    position, cell, params, neighbors = jax.lax.stop_gradient((position, cell, params, neighbors))

    def moved(by: jax.Array) -> jax.Array:
        there = position + by
        return interaction.force(there, cell, params, interaction.refresh(neighbors, there, cell, params))

    force, change = jax.linearize(lambda x: interaction.force(x, cell, params, neighbors), position)
    random = jax.random.normal(jax.random.key(0), position.shape, position.dtype)
    together = jnp.broadcast_to(identity[:, None], (dimension, count, dimension)) / count**0.5
    # Sequential: batched, the pair sums would need several times their memory.
    answers = jax.lax.map(change, jnp.concatenate([together, random[None] / jnp.linalg.norm(random)]))
    stiffness = jnp.sqrt(jnp.max(jnp.sum(answers**2, axis=(1, 2))))
    # Rounded positions change forces by the stiffness times the distance from the origin.
    far = jnp.abs(position).max()
    uncertain = jnp.linalg.norm(force) + stiffness * far
    pull = jnp.zeros((dimension, 1, dimension)).at[:, 0, 0].set(force.sum(axis=0) / count**0.5)
    images = jnp.concatenate([_over(answers[:-1], stiffness), _over(pull, uncertain)], axis=1)
    images, directions = orthogonalized(images.astype(position.dtype), identity[:, None])
    directions = directions[:, 0]
    rounding = ROUNDING * jnp.finfo(position.dtype).eps
    is_free = jnp.sqrt(jnp.sum(images**2, axis=(1, 2))) <= rounding

    size = jnp.ptp(position, axis=0).max() + far
    if cell is not None:
        widths = spaces.of_cell(cell, dimension).widths
        size = jnp.maximum(size, jnp.max(widths, where=jnp.isfinite(widths), initial=0))
    distances = jnp.asarray(PROBES, position.dtype) * size
    probes = (directions[:, None] * distances[:, None]).reshape(-1, dimension)
    differences = jax.lax.map(lambda by: jnp.linalg.norm(moved(by) - force), probes).reshape(dimension, -1)
    allowed = rounding * (uncertain + stiffness * count**0.5 * (far + jnp.abs(distances)))
    is_free &= (differences <= allowed).all(axis=1)
    found = jnp.where(is_free[:, None], directions, 0)
    return jax.lax.stop_gradient(jnp.einsum("ka,kb->ab", found, found, precision="highest"))


def _over(values: jax.Array, scale: jax.Array) -> jax.Array:
    """Return values divided by a scale; zero where the scale is zero."""
    return jnp.where(scale > 0, values / jnp.where(scale > 0, scale, 1), 0)
