"""Hessian of the energy with respect to positions: product with a displacement, matrix, dynamical matrix."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def current_neighbors(interaction: Interaction, position: jax.Array, cell: Cell, params: Params) -> Any:
    """Return the neighbors of an interaction at a position, constant under differentiation.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
    """
    return interaction.prepare(*jax.lax.stop_gradient((position, cell, params)))


def hessian_vector_product(
    interaction: Interaction, position: jax.Array, cell: Cell, params: Params, *, neighbors: Any = None
) -> Callable[[jax.Array], jax.Array]:
    """Return ``u -> H u``, with ``H = d^2 E / dx dx = -dF/dx``, at the cost of about two forces each.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        neighbors: current at these positions; ``None`` prepares them.

    Returns:
        A linear function from displacements, (N, d), to minus the change of the forces, energy / length, (N, d).
    """
    if neighbors is None:
        neighbors = current_neighbors(interaction, position, cell, params)

    def product(displacement: jax.Array) -> jax.Array:
        def force(position: jax.Array) -> jax.Array:
            return interaction.force(position, cell, params, neighbors)

        return -jax.jvp(force, (position,), (displacement,))[1]

    return product


def hessian(
    interaction: Interaction, position: jax.Array, cell: Cell, params: Params, *, neighbors: Any = None
) -> jax.Array:
    """Return ``H = d^2 E / dx dx`` as a matrix. For small systems: memory grows like N^2, cost like N forces.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        neighbors: current at these positions; ``None`` prepares them.

    Returns:
        Energy / length^2, (N d, N d), exactly symmetric; row ``d i + a`` is component a of particle i.
    """
    product = hessian_vector_product(interaction, position, cell, params, neighbors=neighbors)
    unit = jnp.eye(position.size, dtype=position.dtype).reshape(-1, *position.shape)
    # Batches of 32 displacements: all at once, the pair sums would need N d times their memory.
    matrix = jax.lax.map(product, unit, batch_size=min(position.size, 32)).reshape(position.size, position.size)
    return (matrix + matrix.T) / 2


def mass_weighted(hessian: jax.Array, mass: jax.Array) -> jax.Array:
    """Return the dynamical matrix ``D = M^(-1/2) H M^(-1/2)``, whose eigenvalues are squared angular frequencies.

    Args:
        hessian: energy / length^2, (N d, N d).
        mass: scalar or (N,).

    Returns:
        1 / time^2, (N d, N d).
    """
    weight = 1 / jnp.sqrt(jnp.asarray(mass, hessian.dtype))
    if weight.ndim:
        weight = jnp.repeat(weight, len(hessian) // len(weight))
    return hessian * jnp.broadcast_to(weight, len(hessian))[:, None] * weight
