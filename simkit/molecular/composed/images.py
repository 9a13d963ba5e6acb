"""Periodic images of small cells, so that an interaction may reach beyond half the cell."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of adjacent cells whose particles are images of those of the first cell.

    The energy is that of the block over the number of its cells. By symmetry the force on a particle is that on its
    image in the first cell, and the stress is that of the block.

    Attributes:
        interaction: interaction of all particles of the block, ordered by cell.
        repeats: cells along each lattice vector.
    """

    interaction: Interaction
    repeats: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod(self.repeats))

    def repeated(self, position: jax.Array, cell: Cell) -> tuple[jax.Array, jax.Array]:
        """Return the positions of all images, (cells N, d), and the cell of the block."""
        return repeated(position, cell, self.repeats)

    def block(self, cell: jax.Array) -> jax.Array:
        """Return the cell of the block."""
        return block_of(cell, self.repeats)

    def tied(self) -> Interaction:
        """Return the interaction of the particles of one cell."""
        inner, cells = self.interaction, self.cells

        def prepare(position: jax.Array, cell: Cell, params: Params) -> Any:
            return inner.prepare(*self.repeated(position, cell), params)

        def refresh(neighbors: Any, position: jax.Array, cell: Cell, params: Params) -> Any:
            return inner.refresh(neighbors, *self.repeated(position, cell), params)

        def energy(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
            return inner.energy(*self.repeated(position, cell), params, neighbors) / cells

        def force(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
            return inner.force(*self.repeated(position, cell), params, neighbors)[: len(position)]

        def stress(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
            return inner.stress(*self.repeated(position, cell), params, neighbors)

        resize, fits = inner.sized_like, inner.fits
        return Interaction(
            prepare=prepare,
            refresh=refresh,
            energy=energy,
            force=force,
            stress=stress,
            sized_like=resize and (lambda neighbors: Block(resize(neighbors), self.repeats).tied()),
            is_translation_invariant=inner.is_translation_invariant,
            fits=fits and (lambda cell, params: fits(self.block(cell), params)),
        )


def repeated(position: jax.Array, cell: Cell, repeats: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Return the positions of particles and of their images, ordered by cell, (cells N, d), and the cell of the block.

    Args:
        position: (N, d).
        cell: sides (d,), infinite where nothing repeats, or lattice vectors as rows (d, d).
        repeats: cells along each axis.
    """
    assert cell is not None  # nothing repeats in free space
    corners = np.stack(np.meshgrid(*map(np.arange, repeats), indexing="ij"), axis=-1).reshape(-1, len(repeats))
    # Along a side without images there is one cell, whose infinite length times zero would be NaN.
    finite = jnp.where(jnp.isinf(cell), 0, cell)
    shifts = jnp.asarray(corners, cell.dtype) @ spaces.lattice_vectors(finite)
    return (shifts[:, None] + position).reshape(-1, position.shape[1]), block_of(cell, repeats)


def block_of(cell: jax.Array, repeats: tuple[int, ...]) -> jax.Array:
    """Return the cell of a block of adjacent cells.

    Args:
        cell: sides (d,) or lattice vectors as rows (d, d).
        repeats: cells along each axis.
    """
    counts = jnp.asarray(repeats, cell.dtype)
    return cell * (counts if cell.ndim == 1 else counts[:, None])
