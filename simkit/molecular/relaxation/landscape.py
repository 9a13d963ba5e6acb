"""Energy landscape of a relaxation over the coordinates of the minimizer: positions, and the strain of the cell."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.spaces import Cell, determinant, inverse_of, lattice_vectors


class CellCoordinates(NamedTuple):
    """Positions of N particles and strain of their cell, stacked into (N + d, d) coordinates.

    The first N rows are the positions x in the undeformed cell, the last d rows the symmetric strain e times
    ``sqrt(N) length``. With F = 1 + e, the particles are at ``x F`` in the cell ``C F``. The factor makes the cell
    about as stiff as a bond, so that one step length suits both. An isotropic cell keeps its shape: e is a multiple of
    the identity, from the trace of the last d rows.

    Reference: Tadmor, Smith, Bernstein, Kaxiras, Phys. Rev. B 59, 235 (1999), doi:10.1103/PhysRevB.59.235.

    Attributes:
        length: a particle diameter, scalar.
        isotropic: whether the cell keeps its shape; it may then be given by its sides as well.
    """

    length: jax.Array
    isotropic: bool = False

    def join(self, position: jax.Array) -> jax.Array:
        """Return the coordinates of particles in the undeformed cell.

        Args:
            position: (N, d).
        """
        dimension = position.shape[1]
        return jnp.concatenate([position, jnp.zeros((dimension, dimension), position.dtype)])

    def split(self, coordinates: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the deformed positions, (N, d), and the deformed cell, of the shape of ``cell``.

        Args:
            coordinates: (N + d, d).
            cell: undeformed, (d, d), rows are the lattice vectors; or the sides, (d,), if isotropic.
        """
        deformation = self.deformation(coordinates)
        deformed = precise_product(cell, deformation) if cell.ndim == 2 else cell * jnp.diagonal(deformation)
        return precise_product(coordinates[: -len(cell)], deformation), deformed

    def deformation(self, coordinates: jax.Array) -> jax.Array:
        """Return F, (d, d).

        Args:
            coordinates: (N + d, d).
        """
        dimension = coordinates.shape[1]
        strain = self.free(coordinates[-dimension:]) / self._leverage(coordinates)
        return jnp.eye(dimension, dtype=coordinates.dtype) + strain

    def force(
        self, coordinates: jax.Array, force: jax.Array, stress: jax.Array, cell: jax.Array, pressure: jax.Array
    ) -> jax.Array:
        """Return minus the derivative of the enthalpy ``E + p V`` with respect to the coordinates, (N + d, d).

        ``-dH/dx = f F`` and ``-dH/de = -V sym(F^-1 (stress + p))``, its isotropic part in an isotropic cell.

        Args:
            coordinates: (N + d, d).
            force: on the particles, (N, d).
            stress: (1 / V) dE/dstrain, (d, d).
            cell: undeformed, as for `split`.
            pressure: external pressure p.
        """
        deformation = self.deformation(coordinates)
        excess = stress + pressure * jnp.eye(len(deformation), dtype=stress.dtype)
        on_strain = -self.volume(coordinates, cell) * self.free(precise_product(inverse_of(deformation), excess))
        return jnp.concatenate([precise_product(force, deformation), on_strain / self._leverage(coordinates)])

    def volume(self, coordinates: jax.Array, cell: jax.Array) -> jax.Array:
        """Return the volume of the deformed cell.

        Args:
            coordinates: (N + d, d).
            cell: undeformed, as for `split`.
        """
        return jnp.abs(determinant(precise_product(lattice_vectors(cell), self.deformation(coordinates))))

    def on_particles(self, coordinates: jax.Array, force: jax.Array) -> jax.Array:
        """Return the force on the particles, (N, d), from the force on the coordinates.

        Args:
            coordinates: (N + d, d).
            force: on the coordinates, (N + d, d), as `force` returns it.
        """
        return precise_product(force[: -force.shape[1]], inverse_of(self.deformation(coordinates)))

    def on_cell(self, coordinates: jax.Array, force: jax.Array, cell: jax.Array) -> jax.Array:
        """Return the free part of ``F^-1 (stress + p)``, (d, d), from the force on the coordinates; zero at rest.

        Args:
            coordinates: (N + d, d).
            force: on the coordinates, (N + d, d), as `force` returns it.
            cell: undeformed, as for `split`.
        """
        return -force[-force.shape[1] :] * self._leverage(coordinates) / self.volume(coordinates, cell)

    def free(self, matrix: jax.Array) -> jax.Array:
        """Return the part of a matrix that strains the cell: symmetric, and a multiple of the identity if isotropic.

        Args:
            matrix: (d, d).
        """
        if self.isotropic:
            return jnp.trace(matrix) / len(matrix) * jnp.eye(len(matrix), dtype=matrix.dtype)
        return (matrix + matrix.T) / 2

    def _leverage(self, coordinates: jax.Array) -> jax.Array:
        count, dimension = coordinates.shape
        return jnp.sqrt(jnp.asarray(count - dimension, coordinates.dtype)) * self.length


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
