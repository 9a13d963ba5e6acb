"""Energy landscape of a relaxation over the coordinates of the minimizer: positions, and the strain of the cell."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.minimizers import Scale
from simkit.molecular.spaces import Cell, determinant, inverse_of, lattice_vectors

type Rattlers = Callable[[jax.Array, Cell, Params, Any], jax.Array]


@dataclasses.dataclass(frozen=True)
class Landscape:
    """``E(x)`` over the positions of N particles, or ``E + p V`` over positions and strain if the cell relaxes.

    With a cell that relaxes, coordinates are positions and strain of the cell, stacked into (N + d, d): the first N
    rows are the positions x in the undeformed cell, the last d rows the symmetric strain e times ``sqrt(N) length``.
    With F = 1 + e, the particles are at ``x F`` in the cell ``C F``. The factor makes the cell about as stiff as a
    bond, so that one step length suits both. An isotropic cell keeps its shape, and may be given by its sides as well:
    e is a multiple of the identity, from the trace of the last d rows.

    Reference: Tadmor, Smith, Bernstein, Kaxiras, Phys. Rev. B 59, 235 (1999), doi:10.1103/PhysRevB.59.235.

    Attributes:
        interaction: energy of the particles.
        start: ``(params, key) -> position``.
        scale: ``params -> Scale``.
        cell: ``params -> cell``, undeformed; ``None`` for free space.
        relax_cell: whether the cell deforms along with the particles.
        isotropic: whether a relaxing cell keeps its shape.
        pressure: ``params -> `` external pressure on a relaxing cell.
        frozen: mask of particles that do not move, (N,) booleans, in a constant cell; ``None`` if there are none.
        rattlers: ``(position, cell, params, neighbors) -> (N,)`` booleans, particles with too few contacts to be held;
            ``None`` if there are none.
    """

    interaction: Interaction
    start: Callable[[Params, jax.Array], jax.Array]
    scale: Callable[[Params], Scale]
    cell: Callable[[Params], jax.Array] | None
    relax_cell: bool
    isotropic: bool
    pressure: Callable[[Params], jax.Array]
    frozen: np.ndarray | None
    rattlers: Rattlers | None

    def undeformed(self, params: Params) -> jax.Array:
        """Return the cell before it relaxes."""
        assert self.cell is not None  # relax_cell without a cell is refused
        return self.cell(params) if self.isotropic else lattice_vectors(self.cell(params))

    def coordinates(self, position: jax.Array) -> jax.Array:
        """Return the initial coordinates of the minimizer, (N, d), or (N + d, d) if the cell relaxes.

        Args:
            position: (N, d), in the undeformed cell.
        """
        dimension = position.shape[1]
        still = jnp.zeros((dimension, dimension), position.dtype)
        return jnp.concatenate([position, still]) if self.relax_cell else position

    def arrangement(self, coordinates: jax.Array, params: Params) -> tuple[jax.Array, Cell]:
        """Return positions, (N, d), and cell.

        Args:
            coordinates: (N, d), or (N + d, d) if the cell relaxes.
            params: parameters.
        """
        if not self.relax_cell:
            return coordinates, None if self.cell is None else self.cell(params)
        return deformed(coordinates, self.undeformed(params), self.deformation(coordinates, params))

    def evaluate(self, coordinates: jax.Array, params: Params, neighbors: Any) -> tuple[jax.Array, jax.Array]:
        """Return the energy or enthalpy, and minus its gradient in the coordinates, zero for frozen particles.

        In a cell that relaxes ``-dH/dx = f F`` and ``-dH/de = -V sym(F^-1 (stress + p))``.

        Args:
            coordinates: as for `arrangement`.
            params: parameters.
            neighbors: of the interaction, for these coordinates.
        """
        position, deformed = self.arrangement(coordinates, params)
        names = "energy", *self._forces
        energy, *forces = self.interaction.several(names, position, deformed, params, neighbors)
        if self.relax_cell:
            energy = energy + self.pressure(params) * self.volume(coordinates, params)
        return energy, self._on_coordinates(coordinates, params, *forces)

    def force(self, coordinates: jax.Array, params: Params, neighbors: Any) -> jax.Array:
        """Return the second of `evaluate` alone, in less time.

        Args:
            coordinates: as for `arrangement`.
            params: parameters.
            neighbors: of the interaction, for these coordinates.
        """
        position, deformed = self.arrangement(coordinates, params)
        forces = self.interaction.several(self._forces, position, deformed, params, neighbors)
        return self._on_coordinates(coordinates, params, *forces)

    @property
    def _forces(self) -> Quantities:
        return ("force", "stress") if self.relax_cell else ("force",)

    def _on_coordinates(
        self, coordinates: jax.Array, params: Params, force: jax.Array, stress: jax.Array | None = None
    ) -> jax.Array:
        if stress is None:
            return self.on_mobile(force)
        deformation = self.deformation(coordinates, params)
        excess = stress + self.pressure(params) * jnp.eye(len(deformation), dtype=stress.dtype)
        on_strain = -self.volume(coordinates, params) * self.free(precise_product(inverse_of(deformation), excess))
        on_strain = on_strain / _leverage(coordinates, self.scale(params).length)
        return jnp.concatenate([precise_product(force, deformation), on_strain])

    def deformation(self, coordinates: jax.Array, params: Params) -> jax.Array:
        """Return F of a cell that relaxes, (d, d)."""
        return deformation_by(coordinates, self.scale(params).length, isotropic=self.isotropic)

    def volume(self, coordinates: jax.Array, params: Params) -> jax.Array:
        """Return the volume of the deformed cell."""
        vectors = lattice_vectors(self.undeformed(params))
        return jnp.abs(determinant(precise_product(vectors, self.deformation(coordinates, params))))

    def free(self, matrix: jax.Array) -> jax.Array:
        """Return the part of a matrix, (d, d), that strains the cell."""
        return _free(matrix, self.isotropic)

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
        if not self.relax_cell:
            return force
        return precise_product(force[: -force.shape[1]], inverse_of(self.deformation(coordinates, params)))

    def excess(self, coordinates: jax.Array, force: jax.Array, params: Params) -> jax.Array:
        """Return the free part of ``stress + pressure`` in the frame of the undeformed cell, (d, d); zero at rest.

        Args:
            coordinates: (N + d, d).
            force: on the coordinates, as `evaluate` returns it.
            params: parameters.
        """
        leverage = _leverage(coordinates, self.scale(params).length)
        return -force[-force.shape[1] :] * leverage / self.volume(coordinates, params)


def deformation_by(coordinates: jax.Array, length: jax.Array, *, isotropic: bool) -> jax.Array:
    """Return F, (d, d), of coordinates that hold the strain of a cell.

    Args:
        coordinates: (N + d, d).
        length: of the scale.
        isotropic: whether the cell keeps its shape.
    """
    dimension = coordinates.shape[1]
    strain = _free(coordinates[-dimension:], isotropic) / _leverage(coordinates, length)
    return jnp.eye(dimension, dtype=coordinates.dtype) + strain


def deformed(coordinates: jax.Array, cell: jax.Array, deformation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the deformed positions, (N, d), and the deformed cell, of the shape of ``cell``.

    Args:
        coordinates: (N + d, d).
        cell: undeformed, (d, d), rows are the lattice vectors; or the sides, (d,), if it keeps its shape.
        deformation: F, (d, d).
    """
    box = precise_product(cell, deformation) if cell.ndim == 2 else cell * jnp.diagonal(deformation)
    return precise_product(coordinates[: -len(cell)], deformation), box


def _free(matrix: jax.Array, isotropic: bool) -> jax.Array:
    """Return the symmetric part of a matrix, or the multiple of the identity of the same trace, (d, d)."""
    if isotropic:
        return jnp.trace(matrix) / len(matrix) * jnp.eye(len(matrix), dtype=matrix.dtype)
    return (matrix + matrix.T) / 2


def _leverage(coordinates: jax.Array, length: jax.Array) -> jax.Array:
    count, dimension = coordinates.shape
    return jnp.sqrt(jnp.asarray(count - dimension, coordinates.dtype)) * length
