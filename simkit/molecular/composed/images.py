"""Small cells: a block of cells, tied to one, so that an interaction may reach beyond half the cell."""

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
    """Cells side by side whose particles are images of those of the first.

    The energy is that of the block over the number of its cells. By symmetry the force on a particle is that on its
    image in the first cell, and the stress is that of the block.

    Attributes:
        interaction: among all particles of the block, cell after cell.
        repeats: cells along each lattice vector.
    """

    interaction: Interaction
    repeats: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many there are."""
        return int(np.prod(self.repeats))

    def repeated(self, position: jax.Array, cell: Cell) -> tuple[jax.Array, jax.Array]:
        """Return the positions of all, (cells N, d), and the cell of the block."""
        return repeated(position, cell, self.repeats)

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

        resize = inner.sized_like
        return Interaction(
            prepare=prepare,
            refresh=refresh,
            energy=energy,
            force=force,
            stress=stress,
            sized_like=resize and (lambda neighbors: Block(resize(neighbors), self.repeats).tied()),
            is_translation_invariant=inner.is_translation_invariant,
        )


def repeated(position: jax.Array, cell: Cell, repeats: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Return the positions of particles and of their images, cell after cell, (cells N, d), and the cell of them all.

    Args:
        position: (N, d).
        cell: sides (d,), infinite where nothing repeats, or lattice vectors as rows (d, d).
        repeats: cells along each axis.
    """
    assert cell is not None  # nothing repeats in free space
    corners = np.stack(np.meshgrid(*map(np.arange, repeats), indexing="ij"), axis=-1).reshape(-1, len(repeats))
    counts = jnp.asarray(repeats, cell.dtype)
    # Along a side without images there is one cell, whose infinite length times zero would be NaN.
    finite = jnp.where(jnp.isinf(cell), 0, cell)
    shifts = jnp.asarray(corners, cell.dtype) @ spaces.lattice_vectors(finite)
    block = cell * (counts if cell.ndim == 1 else counts[:, None])
    return (shifts[:, None] + position).reshape(-1, position.shape[1]), block
