"""Interaction of an energy function of all positions, given by the user."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from simkit.core.dependence import without_effect
from simkit.core.simulation import Params
from simkit.errors import UserError, listed, nearest
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def user_energy(
    energy: Callable[[jax.Array, Cell, Params], jax.Array], *, parameters: Sequence[str] | None = None
) -> Interaction:
    """Return the interaction of an energy function, with force and stress by differentiation.

    ``F = -dE/dx`` and ``stress = (1/V) dE/dstrain`` for ``x -> x (1 + strain)``, cell likewise.

    Args:
        energy: ``(position, cell, params) -> E``, scalar, for positions (N, d) that may lie outside the cell. It must
            be smooth, and in a periodic cell unchanged when a particle moves by a lattice vector:
            `simkit.molecular.spaces.of_cell` gives nearest images.
        parameters: names (of branches too) of the params that the energy takes; ``None`` passes all.

    Raises:
        UserError: if ``parameters`` is one text; when the energy is first evaluated, if one of them is not among the
            params or has no effect on it.

    Example: a spring from each particle to the origin, ``user_energy(lambda x, cell, p: p["k"] / 2 * jnp.sum(x**2))``.
    """
    names = None if parameters is None else listed(parameters, "user_energy: parameters")

    def evaluate(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        return energy(position, cell, params if names is None else _chosen(energy, position, cell, params, names))

    def force(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return -jax.grad(evaluate)(position, cell, params)

    def stress(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return strain_derivative(evaluate, position, cell, params) / spaces.of_cell(cell, position.shape[1]).volume

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=lambda position, cell, params, _: evaluate(position, cell, params),
        force=force,
        stress=stress,
    )


def _chosen(
    energy: Callable[..., jax.Array], position: jax.Array, cell: Cell, params: Params, names: Sequence[str]
) -> Params:
    """Return the params of these names, refusing one without effect; while tracing, so that a run has no overhead."""
    for name in names:
        if name not in params:
            raise UserError(f"user_energy: parameter '{name}' is not among the params{nearest(name, list(params))}")
    chosen = {name: params[name] for name in names}
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), chosen)
    for name in without_effect(lambda chosen: energy(position, cell, chosen), shapes):
        raise UserError(f"user_energy: the energy does not depend on the parameter '{name}'; remove it from parameters")
    return chosen


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
        Energy, (d, d), symmetric for an energy that is invariant under rotation.

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
