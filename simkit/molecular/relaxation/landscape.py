"""Energy landscape of a relaxation: energy, or enthalpy if the cell relaxes, over the coordinates of the minimizer."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation.cell_coordinates import CellCoordinates
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Landscape:
    """``E(x)``, or ``E + p V`` over positions and strain (`CellCoordinates`) if the cell relaxes.

    Attributes:
        interaction: energy of the particles.
        scale: ``params -> Scale``.
        cell: ``params -> cell``, undeformed; ``None`` for free space.
        relax_cell: whether the cell deforms along with the particles.
        isotropic: whether a relaxing cell keeps its shape.
        pressure: ``params -> `` external pressure on a relaxing cell.
        frozen: mask of particles that do not move, (N,) booleans, in a constant cell; ``None`` if there are none.
    """

    interaction: Interaction
    scale: Callable[[Params], Scale]
    cell: Callable[[Params], jax.Array] | None
    relax_cell: bool
    isotropic: bool
    pressure: Callable[[Params], jax.Array]
    frozen: np.ndarray | None = None

    def deformable(self, params: Params) -> CellCoordinates:
        """Return the joint coordinates of particles and cell."""
        return CellCoordinates(length=self.scale(params).length, isotropic=self.isotropic)

    def undeformed(self, params: Params) -> jax.Array:
        """Return the cell before it relaxes."""
        assert self.cell is not None  # relax_cell without a cell is refused
        return self.cell(params) if self.isotropic else spaces.lattice_vectors(self.cell(params))

    def coordinates(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the initial coordinates of the minimizer, (N, d), or (N + d, d) if the cell relaxes.

        Args:
            position: (N, d), in the undeformed cell.
            params: parameters.
        """
        return self.deformable(params).join(position) if self.relax_cell else position

    def arrangement(self, coordinates: jax.Array, params: Params) -> tuple[jax.Array, Cell]:
        """Return positions, (N, d), and cell.

        Args:
            coordinates: (N, d), or (N + d, d) if the cell relaxes.
            params: parameters.
        """
        if self.relax_cell:
            return self.deformable(params).split(coordinates, self.undeformed(params))
        return coordinates, None if self.cell is None else self.cell(params)

    def evaluate(self, coordinates: jax.Array, params: Params, neighbors: Any) -> tuple[jax.Array, jax.Array]:
        """Return the energy or enthalpy, and minus its gradient in the coordinates, zero for frozen particles.

        Args:
            coordinates: as for `arrangement`.
            params: parameters.
            neighbors: of the interaction, for these coordinates.
        """
        position, deformed = self.arrangement(coordinates, params)
        energy = self.interaction.energy(position, deformed, params, neighbors)
        force = self.interaction.force(position, deformed, params, neighbors)
        if not self.relax_cell:
            return energy, self.on_mobile(force)
        stress = self.interaction.stress(position, deformed, params, neighbors)
        deformable, undeformed, pressure = self.deformable(params), self.undeformed(params), self.pressure(params)
        joint = deformable.force(coordinates, force, stress, undeformed, pressure)
        return energy + pressure * deformable.volume(coordinates, undeformed), joint

    def on_mobile(self, vectors: jax.Array) -> jax.Array:
        """Return vectors, (N, d), zero for frozen particles.

        Args:
            vectors: (N, d).
        """
        return vectors if self.frozen is None else jnp.where(self.frozen[:, None], 0, vectors)

    def forces(self, coordinates: jax.Array, force: jax.Array, params: Params) -> jax.Array:
        """Return the forces on the particles, (N, d).

        Args:
            coordinates: as for `arrangement`.
            force: on the coordinates, as `evaluate` returns it.
            params: parameters.
        """
        return self.deformable(params).on_particles(coordinates, force) if self.relax_cell else force

    def excess(self, coordinates: jax.Array, force: jax.Array, params: Params) -> jax.Array:
        """Return the free part of ``stress + pressure`` in the frame of the undeformed cell, (d, d); zero at rest.

        Args:
            coordinates: (N + d, d).
            force: on the coordinates, as `evaluate` returns it.
            params: parameters.
        """
        return self.deformable(params).on_cell(coordinates, force, self.undeformed(params))
