"""Generalized coordinates of particles and cell strain, which any minimizer relaxes together."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.spaces import determinant, inverse_of, lattice_vectors


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
        deformed = cell @ deformation if cell.ndim == 2 else cell * jnp.diagonal(deformation)
        return coordinates[: -len(cell)] @ deformation, deformed

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
        on_strain = -self.volume(coordinates, cell) * self.free(inverse_of(deformation) @ excess)
        return jnp.concatenate([force @ deformation, on_strain / self._leverage(coordinates)])

    def volume(self, coordinates: jax.Array, cell: jax.Array) -> jax.Array:
        """Return the volume of the deformed cell.

        Args:
            coordinates: (N + d, d).
            cell: undeformed, as for `split`.
        """
        return jnp.abs(determinant(lattice_vectors(cell) @ self.deformation(coordinates)))

    def on_particles(self, coordinates: jax.Array, force: jax.Array) -> jax.Array:
        """Return the force on the particles, (N, d), from the force on the coordinates.

        Args:
            coordinates: (N + d, d).
            force: on the coordinates, (N + d, d), as `force` returns it.
        """
        return force[: -force.shape[1]] @ inverse_of(self.deformation(coordinates))

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
