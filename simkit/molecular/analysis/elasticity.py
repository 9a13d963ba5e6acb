"""Elastic constants at a minimum: derivative of the stress with respect to strain, with nonaffine relaxation.

A strain e deforms positions affinely, ``x -> x (1 + e)``; then the particles relax by the nonaffine displacement u.
Six (three in two dimensions) components are in Voigt order, xx yy zz yz xz xy (xx yy xy), with engineering shear
strains, ``gamma_xy = 2 e_xy``.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.core.symmetric_solve import solve_symmetric
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis.hessian import current_neighbors, hessian_vector_product
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.relaxation.zero_modes import projection, zero_modes

# Smallest stiffness of a mode that is certain to be positive, in units of round-off of the stiffest mode.
MARGINAL = 1e3


class ElasticConstants(NamedTuple):
    """Elastic constants, stress and nonaffine displacements, see `elastic_constants`.

    Attributes:
        stiffness: ``d sigma / d e``, derivative of the Cauchy stress, with relaxed particles; energy / length^d, (n, n)
            in Voigt notation, n = 3 or 6.
        born: ``d sigma / d e`` at affinely deformed positions, (n, n).
        stress: Cauchy stress, positive under tension, (d, d).
        nonaffine: ``du / d e``, the nonaffine displacements for each strain, (n, N, d).
    """

    stiffness: jax.Array
    born: jax.Array
    stress: jax.Array
    nonaffine: jax.Array

    @property
    def energy_stiffness(self) -> jax.Array:
        """Second derivative of the energy density with respect to the Lagrangian strain, (n, n), symmetric.

        ``C_abcd = (1/V) d^2 E / d eta_ab d eta_cd``, ``eta = e + e^2 / 2``, with relaxed particles. These are the
        second-order elastic constants of tables; they differ from the stiffness by the stress (Wallace):
        ``stiffness_abcd = C_abcd + (s_ad d_bc + s_ac d_bd + s_bd d_ac + s_bc d_ad) / 2 - s_ab d_cd``.
        """
        return self.stiffness - stress_correction(self.stress)


def elastic_constants(
    interaction: Interaction,
    position: jax.Array,
    cell: jax.Array,
    params: Params,
    *,
    neighbors: Any = None,
    rattlers: jax.Array | None = None,
    distance_tolerance: float = 1e-4,
) -> ElasticConstants:
    """Return the elastic constants at zero temperature of relaxed particles in a cell.

    ``stiffness_IJ = d sigma_I / d e_J - (1/V) X_I . H^-1 X_J``, with ``X_J = dF / d e_J``, the forces caused by an
    affine strain, and H the Hessian without zero modes. The first term is the derivative of the stress at affinely
    deformed positions, the second the effect of the nonaffine displacements ``u = H^-1 X_J``. No matrix is stored.

    The stiffness is the derivative of the Cauchy stress, as measured at finite strain, and determines stability under
    load. At zero stress it is also the second derivative of the energy density; otherwise see
    `ElasticConstants.energy_stiffness`.

    The result is NaN if the particles are not at a minimum: at a saddle, with a zero mode other than translations, or
    too far from equilibrium. It is differentiable with respect to position, cell and params if the interaction is three
    times differentiable.

    Args:
        interaction: energy of the particles. If the force jumps at a cut-off, derivatives miss the contribution of
            pairs that cross it under strain: use a potential with zero force at the cut-off.
        position: at a minimum, length, (N, d).
        cell: (d,) side lengths or (d, d) lattice vectors as rows.
        params: of the interaction.
        neighbors: current at these positions; ``None`` prepares them.
        rattlers: mask of particles with too few contacts to be held, (N,) booleans; they follow the strain affinely.
        distance_tolerance: largest component of the Newton step to the minimum, in units of ``(V/N)^(1/d)``. The
            relative error of the constants is about ten times that.

    Raises:
        UserError: in free space.

    Reference: Lutsko, J. Appl. Phys. 65, 2991 (1989), doi:10.1063/1.342716; Wallace, Thermodynamics of Crystals
    (1972); Lemaitre and Maloney, J. Stat. Phys. 123, 415 (2006), doi:10.1007/s10955-005-9015-5.
    """
    if cell is None:
        raise UserError("free space has no volume and so no elastic constants; give a cell")
    dimension, cell = position.shape[1], spaces.lattice_vectors(cell)
    if neighbors is None:
        neighbors = current_neighbors(interaction, position, cell, params)
    volume = spaces.of_cell(cell, dimension).volume

    def strained(strain: jax.Array) -> tuple[jax.Array, jax.Array]:
        deformation = jnp.eye(dimension, dtype=position.dtype) + strain
        at = position @ deformation, cell @ deformation
        return interaction.stress(*at, params, neighbors), interaction.force(*at, params, neighbors)

    (stress, force), linear = jax.linearize(strained, jnp.zeros((dimension, dimension), position.dtype))
    on_stress, on_force = jax.vmap(linear)(_unit_strains(dimension, position.dtype))
    born = jnp.stack([to_voigt(change) for change in on_stress], axis=1)

    held = jnp.zeros(len(position), bool) if rattlers is None else rattlers

    def force_of(position: jax.Array) -> jax.Array:
        return interaction.force(position, *jax.lax.stop_gradient((cell, params)), neighbors)

    # In a field with the period of the cell translations are no zero modes.
    motions = zero_modes(force_of, position, rotations=False, among=~held)

    def project(displacement: jax.Array) -> jax.Array:
        displacement = jnp.where(held[:, None], 0, displacement)
        return displacement - projection(motions, displacement)

    product = hessian_vector_product(interaction, position, cell, params, neighbors=neighbors)
    # A vector with components along every mode: solving for it detects modes that the other right-hand sides miss.
    drawn = jax.random.normal(jax.random.key(0), position.shape, position.dtype)
    probe = project(drawn)
    sides = jnp.concatenate([on_force, jnp.stack([force, probe])])
    *nonaffine, step, answer = jax.vmap(lambda side: solve_symmetric(product, side, project))(sides)
    nonaffine = jnp.stack(nonaffine)
    softening = jnp.einsum("ina,jna->ij", on_force, nonaffine) / volume

    # A single particle of a periodic cell has no motion but translation, hence nothing to relax.
    margin = MARGINAL * jnp.finfo(position.dtype).eps
    is_single = jnp.any(~held) & (jnp.linalg.norm(probe) <= margin * jnp.linalg.norm(drawn))
    softening, nonaffine = (jnp.where(is_single, 0, found) for found in (softening, nonaffine))
    softest = jnp.sum(probe * answer) / jnp.sum(answer**2)
    stiffest = jnp.linalg.norm(product(probe)) / jnp.linalg.norm(probe)
    spacing = (volume / len(position)) ** (1 / dimension)
    is_at_rest = jnp.abs(step).max() < distance_tolerance * spacing
    is_minimum = is_single | ((softest > margin * stiffest) & is_at_rest)
    return ElasticConstants(
        stiffness=jnp.where(is_minimum, born - softening, jnp.nan),
        born=jnp.where(is_minimum, born, jnp.nan),
        stress=stress,
        nonaffine=jnp.where(is_minimum, nonaffine, jnp.nan),
    )


def pressure(stress: jax.Array) -> jax.Array:
    """Return the pressure, ``p = -tr(sigma) / d``.

    Args:
        stress: Cauchy stress, positive under tension, (d, d).
    """
    return -jnp.trace(stress) / len(stress)


def stress_correction(stress: jax.Array) -> jax.Array:
    """Return the stiffness less the second derivative of the energy density, zero at zero stress.

    ``(s_ad d_bc + s_ac d_bd + s_bd d_ac + s_bc d_ad) / 2 - s_ab d_cd``, with s the stress and d the identity. Under
    a pressure p that is -p for xxxx, +p for xxyy and -p for xyxy.

    Args:
        stress: Cauchy stress, positive under tension, (d, d).

    Returns:
        Energy / length^d, (n, n) in Voigt notation; symmetric if the stress is isotropic.
    """
    one = jnp.eye(len(stress), dtype=stress.dtype)
    turned = [jnp.einsum(f"{axes}->abcd", stress, one) for axes in ("ad,bc", "ac,bd", "bd,ac", "bc,ad")]
    return _tensor_to_voigt(sum(turned) / 2 - jnp.einsum("ab,cd->abcd", stress, one))


def to_voigt(stress: jax.Array) -> jax.Array:
    """Return the components of a symmetric tensor in Voigt order, (n,).

    Args:
        stress: (d, d).
    """
    return jnp.stack([(stress[a, b] + stress[b, a]) / 2 for a, b in voigt_pairs(len(stress))])


def voigt_pairs(dimension: int) -> list[tuple[int, int]]:
    """Return the axes of each Voigt component: xx yy zz yz xz xy, or xx yy xy.

    Args:
        dimension: 2 or 3.
    """
    shear = [(0, 1)] if dimension == 2 else [(1, 2), (0, 2), (0, 1)]
    return [(axis, axis) for axis in range(dimension)] + shear


def _tensor_to_voigt(tensor: jax.Array) -> jax.Array:
    pairs = voigt_pairs(len(tensor))
    return jnp.stack([jnp.stack([tensor[a, b, c, d] for c, d in pairs]) for a, b in pairs])


def _unit_strains(dimension: int, dtype: jnp.dtype) -> jax.Array:
    one = jnp.eye(dimension, dtype=dtype)
    strains = [(jnp.outer(one[a], one[b]) + jnp.outer(one[b], one[a])) / 2 for a, b in voigt_pairs(dimension)]
    return jnp.stack(strains)
