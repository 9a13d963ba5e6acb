"""A user's own energy of all positions, as an interaction like any other."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def user_energy(energy: Callable[[jax.Array, Cell, Params], jax.Array]) -> Interaction:
    """Return the interaction of a given energy; force and stress follow by differentiation.

    ``F = -dE/dx`` and ``stress = (1/V) dE/dstrain`` for ``x -> x (1 + strain)``, cell likewise.

    Args:
        energy: ``(position, cell, params) -> E``, scalar, for positions (N, d) that may lie outside the cell. It must
            be smooth, and in a periodic cell unchanged when a particle moves by a lattice vector:
            `simkit.molecular.spaces.of_cell` gives nearest images.

    Example: a spring from each particle to the origin, ``user_energy(lambda x, cell, p: p["k"] / 2 * jnp.sum(x**2))``.
    """

    def force(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return -jax.grad(energy)(position, cell, params)

    def stress(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return strain_derivative(energy, position, cell, params) / spaces.of_cell(cell, position.shape[1]).volume

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=lambda position, cell, params, _: energy(position, cell, params),
        force=force,
        stress=stress,
        overflow=lambda _: jnp.bool_(False),
    )


def strain_derivative(
    energy: Callable[[jax.Array, Cell, Params], jax.Array], position: jax.Array, cell: Cell, params: Params
) -> jax.Array:
    """Return ``dE/dstrain`` at zero strain, positions and cell deformed alike.

    Args:
        energy: ``(position, cell, params) -> E``.
        position: length, (N, d).
        cell: length, (d,) or (d, d).
        params: of the energy.

    Returns:
        Energy, (d, d), symmetric for an energy that does not change under rotation.

    Raises:
        UserError: in free space.
    """
    if cell is None:
        raise UserError("free space has no volume and so no stress; give a cell")
    identity = jnp.eye(position.shape[1], dtype=position.dtype)

    def strained(strain: jax.Array) -> jax.Array:
        deformation = identity + strain
        return energy(position @ deformation, spaces.lattice_vectors(cell) @ deformation, params)

    return jax.grad(strained)(jnp.zeros_like(identity))
