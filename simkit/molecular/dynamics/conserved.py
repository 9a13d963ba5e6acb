"""Conserved total momentum: the directions in which the energy is invariant under translation of all particles."""

from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.relaxation.zero_modes import ROUNDING, orthogonalized
from simkit.molecular.spaces import Cell

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
    return jax.lax.stop_gradient(jnp.einsum("ka,kb->ab", found, found))


def _over(values: jax.Array, scale: jax.Array) -> jax.Array:
    """Return values divided by a scale; zero where the scale is zero."""
    return jnp.where(scale > 0, values / jnp.where(scale > 0, scale, 1), 0)
