"""Arrays of a frame: positions and cell of particles, in relaxations and dynamics."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays
from simkit.molecular import spaces
from simkit.molecular.spaces import Cell


def in_cell(position: jax.Array, cell: Cell) -> Arrays:
    """Return the stored positions: wrapped into the cell if there is one, with its lattice vectors and their lengths.

    Args:
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
    """
    if cell is None:
        return {"position": position}
    vectors = spaces.lattice_vectors(cell)
    box = jnp.sqrt(jnp.sum(vectors**2, axis=1))
    return {"position": spaces.of_cell(cell, position.shape[1]).wrap(position), "cell": vectors, "box": box}


def dimensions_of(*per_particle: str, has_cell: bool, **others: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the dimension names of stored arrays.

    Args:
        *per_particle: names of arrays (N, d) in addition to ``position``.
        has_cell: whether the particles have a cell.
        **others: dimension names of other arrays.
    """
    names = {name: ("particle", "axis") for name in ("position", *per_particle)} | others
    return names | {"cell": ("lattice_vector", "axis"), "box": ("lattice_vector",)} if has_cell else names
