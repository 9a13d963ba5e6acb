"""Tail correction: energy and pressure beyond the cut-off for a uniform density."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def uniform_tail(moment: Callable[[Params], jax.Array]) -> Interaction:
    """Return the interaction ``E = 2 pi N^2 M / V``, the tail correction of a three-dimensional system.

    ``M = integral of U_rest(r) r^2 dr``, where U_rest is the part missing from the pair potential in use: U beyond a
    sharp cut-off, ``U (1 - S)`` with a switch S. It has no force on particles and the pressure E / V. In a crystal a
    switch makes it far more accurate than a sharp cut-off, which divides shells.

    Args:
        moment: ``params -> M``, energy length^3.

    Reference: Allen, Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford (2017), section 2.8,
    doi:10.1093/oso/9780198803195.001.0001.
    """

    def energy(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return 2 * math.pi * len(position) ** 2 * moment(params) / volume(position, cell)

    def stress(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        energy_density = energy(position, cell, params, _) / volume(position, cell)
        return -energy_density * jnp.eye(position.shape[1], dtype=position.dtype)

    def volume(position: jax.Array, cell: Cell) -> jax.Array:
        if cell is None or position.shape[1] != 3:
            raise UserError("a tail correction needs a cell in three dimensions")
        return spaces.of_cell(cell, 3).volume

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=energy,
        force=lambda position, cell, params, _: jnp.zeros_like(position),
        stress=stress,
        is_translation_invariant=True,
    )
