"""Normal modes of small vibrations about a minimum: frequencies and displacements."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.analysis.hessian import hessian, mass_weighted
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


class NormalModes(NamedTuple):
    """All modes, by ascending squared frequency.

    Attributes:
        frequency: angular, 1 / time, (N d,); minus the growth rate of an unstable mode.
        vector: displacements, (N d, N, d), orthonormal with the masses: ``sum_i m_i u_i . v_i`` is one or zero.
        is_zero: mask of modes without a restoring force, (N d,) booleans.
    """

    frequency: jax.Array
    vector: jax.Array
    is_zero: jax.Array

    @property
    def zero_modes(self) -> jax.Array:
        """Number of modes without a restoring force: at least the rigid motions."""
        return self.is_zero.sum()

    def lowest(self, count: int) -> "NormalModes":
        """Return the modes of lowest frequency that are not zero modes, unstable ones first.

        Args:
            count: number of modes; zero modes come last if there are fewer others.

        Raises:
            UserError: if the system has fewer modes.
        """
        if not 1 <= count <= len(self.frequency):
            raise UserError(f"count = {count}; the system has {len(self.frequency)} modes")
        first = jnp.argsort(jnp.where(self.is_zero, jnp.inf, self.frequency))[:count]
        return jax.tree.map(lambda x: x[first], self)


def normal_modes(
    interaction: Interaction,
    position: jax.Array,
    cell: Cell,
    params: Params,
    *,
    mass: jax.Array | float = 1.0,
    neighbors: Any = None,
    zero_tolerance: float | None = None,
) -> NormalModes:
    """Return the normal modes: ``H u = omega^2 M u``, by diagonalizing the mass-weighted Hessian.

    At a minimum in a cell the zero modes are d translations; in free space also three rotations (one in two dimensions,
    two for particles on a line). Further zero modes are rattlers or other floppy motions; negative frequencies indicate
    a saddle. For analysis of small systems: a dense matrix of N d rows, at a cost of (N d)^3. In a periodic cell these
    are the vibrations with the period of the cell (wave vector zero). Frequencies are differentiable (for degenerate
    ones only their sum); the vectors are constants. Second derivatives of frequencies that are equal within round-off
    are NaN.

    Args:
        interaction: energy of the particles.
        position: at a minimum, length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        params: of the interaction.
        mass: of the particles, scalar or (N,).
        neighbors: current at these positions; ``None`` prepares them.
        zero_tolerance: largest |omega^2| of a zero mode, in units of the largest; ``None`` for round-off to the power
            2/3: 4e-11 in float64, 2e-5 in float32. A residual force f on a cluster of size L gives its rotations
            ``omega^2 = f / (m L)``.

    Raises:
        UserError: if ``mass`` is neither one number nor one per particle.
    """
    mass = jnp.asarray(mass, position.dtype)
    if mass.shape not in ((), (len(position),)):
        raise UserError(f"mass has shape {mass.shape}; give one number or one for each of {len(position)} particles")
    rounding = float(jnp.finfo(position.dtype).eps) ** (2 / 3)
    tolerance = rounding if zero_tolerance is None else zero_tolerance
    matrix = mass_weighted(hessian(interaction, position, cell, params, neighbors=neighbors), mass)
    squared, columns = _diagonalized(matrix, tolerance)
    columns = jax.lax.stop_gradient(columns)
    is_zero = _is_zero(squared, tolerance)
    squared = jnp.where(is_zero, jax.lax.stop_gradient(squared), squared)
    size = jnp.sqrt(jnp.where(squared == 0, 1, jnp.abs(squared))) * (squared != 0)
    return NormalModes(
        frequency=jnp.where(squared < 0, -size, size),
        vector=columns.T.reshape(-1, *position.shape) / jnp.sqrt(jnp.broadcast_to(mass, len(position)))[:, None],
        is_zero=is_zero,
    )


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _diagonalized(matrix: jax.Array, tolerance: float) -> tuple[jax.Array, jax.Array]:
    """Return eigenvalues and eigenvectors as columns; degenerate eigenvalues have first derivatives too."""
    columns = jnp.linalg.eigh(matrix)[1]
    return jnp.einsum("ai,ab,bi->i", columns, matrix, columns), columns


@_diagonalized.defjvp
def _derivatives_of_diagonalized(
    tolerance: float, matrix: tuple[jax.Array], change: tuple[jax.Array]
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    values, columns = _diagonalized(*matrix, tolerance)
    within = columns.T @ change[0] @ columns
    apart, largest = values[None, :] - values[:, None], jnp.abs(values).max()
    close = jnp.abs(apart) <= jnp.finfo(values.dtype).eps ** (2 / 3) * largest
    is_zero = _is_zero(values, tolerance)
    # Zero modes are constants. Derivatives of eigenvectors with equal eigenvalues are undefined.
    mixed = jnp.where(close, jnp.nan, within / jnp.where(close, 1, apart))
    mixed = jnp.where((is_zero[:, None] & is_zero) | jnp.eye(len(values), dtype=bool), 0, mixed)
    return (values, columns), (jnp.diagonal(within), columns @ mixed)


def _is_zero(squared: jax.Array, tolerance: float) -> jax.Array:
    return jnp.abs(squared) <= tolerance * jnp.abs(squared).max()
