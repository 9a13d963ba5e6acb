"""Second derivatives at a minimum: Hessian, normal modes, elastic constants, and moduli of polycrystals."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_integer, check_shape
from simkit.core.formulation import precise_product
from simkit.core.implicit import solve_symmetric
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.relaxation.equilibrium import projection, zero_modes
from simkit.molecular.spaces import Cell


def current_neighbors(interaction: Interaction, position: jax.Array, cell: Cell, params: Params) -> Any:
    """Return the neighbors of an interaction at a position, constant under differentiation.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
    """
    return interaction.prepare(*jax.lax.stop_gradient((position, cell, params)))


def hessian_vector_product(
    interaction: Interaction, position: jax.Array, cell: Cell, params: Params, *, neighbors: Any = None
) -> Callable[[jax.Array], jax.Array]:
    """Return ``u -> H u``, with ``H = d^2 E / dx dx = -dF/dx``, at the cost of about two forces each.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        neighbors: current at these positions; ``None`` prepares them.

    Returns:
        A linear function from displacements, (N, d), to minus the change of the forces, energy / length, (N, d).
    """
    if neighbors is None:
        neighbors = current_neighbors(interaction, position, cell, params)

    def product(displacement: jax.Array) -> jax.Array:
        def force(position: jax.Array) -> jax.Array:
            return interaction.force(position, cell, params, neighbors)

        return -jax.jvp(force, (position,), (displacement,))[1]

    return product


def hessian(
    interaction: Interaction, position: jax.Array, cell: Cell, params: Params, *, neighbors: Any = None
) -> jax.Array:
    """Return ``H = d^2 E / dx dx`` as a matrix. For small systems: memory grows like N^2, cost like N forces.

    Args:
        interaction: energy of the particles.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: of the interaction.
        neighbors: current at these positions; ``None`` prepares them.

    Returns:
        Energy / length^2, (N d, N d), exactly symmetric; row ``d i + a`` is component a of particle i.
    """
    product = hessian_vector_product(interaction, position, cell, params, neighbors=neighbors)
    unit = jnp.eye(position.size, dtype=position.dtype).reshape(-1, *position.shape)
    # Batches of 32 displacements: all at once, the pair sums would need N d times their memory.
    matrix = jax.lax.map(product, unit, batch_size=min(position.size, 32)).reshape(position.size, position.size)
    return (matrix + matrix.T) / 2


def mass_weighted(hessian: jax.Array, mass: jax.Array) -> jax.Array:
    """Return the dynamical matrix ``D = M^(-1/2) H M^(-1/2)``, whose eigenvalues are squared angular frequencies.

    Args:
        hessian: energy / length^2, (N d, N d).
        mass: scalar or (N,).

    Returns:
        1 / time^2, (N d, N d).
    """
    weight = 1 / jnp.sqrt(jnp.asarray(mass, hessian.dtype))
    if weight.ndim:
        weight = jnp.repeat(weight, len(hessian) // len(weight))
    return hessian * jnp.broadcast_to(weight, len(hessian))[:, None] * weight


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
        check_integer("count", count, 1, len(self.frequency))
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
) -> NormalModes:
    """Return the normal modes: ``H u = omega^2 M u``, by diagonalizing the mass-weighted Hessian.

    At a minimum in a cell the zero modes are d translations; in free space also three rotations (one in two dimensions,
    two for particles on a line). Further zero modes are rattlers or other floppy motions; negative frequencies indicate
    a saddle. For analysis of small systems: a dense matrix of N d rows, at a cost of (N d)^3. In a periodic cell these
    are the vibrations with the period of the cell (wave vector zero). Frequencies are differentiable (for degenerate
    ones only their sum); the vectors are constants. Second derivatives of frequencies that are equal within round-off
    are NaN. A zero mode has at most the largest |omega^2| times round-off to the power 2/3, 4e-11 in float64 and 2e-5
    in float32; a residual force f on a cluster of size L gives its rotations ``omega^2 = f / (m L)``.

    Args:
        interaction: energy of the particles.
        position: at a minimum, length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        params: of the interaction.
        mass: of the particles, scalar or (N,).
        neighbors: current at these positions; ``None`` prepares them.

    Raises:
        UserError: if ``mass`` is neither one number nor one per particle.
    """
    mass = jnp.asarray(mass, position.dtype)
    wanted = f"one number or one for each of {len(position)} particles"
    check_shape("mass", mass, wanted, (), (len(position),))
    matrix = mass_weighted(hessian(interaction, position, cell, params, neighbors=neighbors), mass)
    squared, columns = _diagonalized(matrix)
    columns = jax.lax.stop_gradient(columns)
    is_zero = _is_zero(squared)
    squared = jnp.where(is_zero, jax.lax.stop_gradient(squared), squared)
    size = jnp.sqrt(jnp.where(squared == 0, 1, jnp.abs(squared))) * (squared != 0)
    return NormalModes(
        frequency=jnp.where(squared < 0, -size, size),
        vector=columns.T.reshape(-1, *position.shape) / jnp.sqrt(jnp.broadcast_to(mass, len(position)))[:, None],
        is_zero=is_zero,
    )


def squared_frequencies(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues of a dynamical matrix, and the mask of those that are zero within round-off.

    Args:
        matrix: 1 / time^2, (n, n), symmetric.

    Returns:
        Squared angular frequencies, (n,), ascending, with first derivatives where a sum over degenerate ones is meant;
        booleans, (n,). Derivatives of zeros are zero.
    """
    squared, _ = _diagonalized(matrix)
    is_zero = _is_zero(squared)
    return jnp.where(is_zero, jax.lax.stop_gradient(squared), squared), is_zero


@jax.custom_jvp
def _diagonalized(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return eigenvalues and eigenvectors as columns; degenerate eigenvalues have first derivatives too."""
    columns = jnp.linalg.eigh(matrix)[1]
    return jnp.einsum("ai,ab,bi->i", columns, matrix, columns, precision="highest"), columns


@_diagonalized.defjvp
def _derivatives_of_diagonalized(
    matrix: tuple[jax.Array], change: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    values, columns = _diagonalized(*matrix)
    within = precise_product(columns.T, change[0], columns)
    apart, largest = values[None, :] - values[:, None], jnp.abs(values).max()
    close = jnp.abs(apart) <= jnp.finfo(values.dtype).eps ** (2 / 3) * largest
    is_zero = _is_zero(values)
    # Zero modes are constants. Derivatives of eigenvectors with equal eigenvalues are undefined.
    mixed = jnp.where(close, jnp.nan, within / jnp.where(close, 1, apart))
    mixed = jnp.where((is_zero[:, None] & is_zero) | jnp.eye(len(values), dtype=bool), 0, mixed)
    return (values, columns), (jnp.diagonal(within), precise_product(columns, mixed))


def _is_zero(squared: jax.Array) -> jax.Array:
    return jnp.abs(squared) <= float(jnp.finfo(squared.dtype).eps) ** (2 / 3) * jnp.abs(squared).max()


# Smallest stiffness of a mode that is certain to be positive, in units of round-off of the stiffest mode.
MARGINAL = 1e3
# Largest component of the Newton step to a minimum that counts as at rest, in units of ``(V/N)^(1/d)``: the relative
# error of the elastic constants is about ten times that.
NEAREST = 1e-4


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

    Raises:
        UserError: in free space.

    Reference: Lutsko, J. Appl. Phys. 65, 2991 (1989), doi:10.1063/1.342716; Wallace, Thermodynamics of Crystals
    (1972); Lemaitre and Maloney, J. Stat. Phys. 123, 415 (2006), doi:10.1007/s10955-005-9015-5.
    """
    dimension, volume = position.shape[1], spaces.volume_of(cell, position.shape[1])
    cell = spaces.lattice_vectors(cell)
    if neighbors is None:
        neighbors = current_neighbors(interaction, position, cell, params)

    def strained(strain: jax.Array) -> tuple[jax.Array, jax.Array]:
        deformation = jnp.eye(dimension, dtype=position.dtype) + strain
        at = precise_product(position, deformation), precise_product(cell, deformation)
        return interaction.stress(*at, params, neighbors), interaction.force(*at, params, neighbors)

    (stress, force), linear = jax.linearize(strained, jnp.zeros((dimension, dimension), position.dtype))
    on_stress, on_force = jax.vmap(linear)(_unit_strains(dimension, position.dtype))
    born = jnp.stack([to_voigt(change) for change in on_stress], axis=1)

    held = jnp.zeros(len(position), bool) if rattlers is None else rattlers

    def force_of(position: jax.Array) -> jax.Array:
        return interaction.force(position, *jax.lax.stop_gradient((cell, params)), neighbors)

    # In a field with the period of the cell translations are no zero modes.
    motions = zero_modes(
        force_of,
        position,
        rotations=False,
        length=0.0,
        among=~held,
        translates=interaction.is_translation_invariant,
    )

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
    softening = jnp.einsum("ina,jna->ij", on_force, nonaffine, precision="highest") / volume

    # A single particle of a periodic cell has no motion but translation, hence nothing to relax.
    margin = MARGINAL * jnp.finfo(position.dtype).eps
    is_single = jnp.any(~held) & (jnp.linalg.norm(probe) <= margin * jnp.linalg.norm(drawn))
    softening, nonaffine = (jnp.where(is_single, 0, found) for found in (softening, nonaffine))
    softest = jnp.sum(probe * answer) / jnp.sum(answer**2)
    stiffest = jnp.linalg.norm(product(probe)) / jnp.linalg.norm(probe)
    spacing = (volume / len(position)) ** (1 / dimension)
    is_at_rest = jnp.abs(step).max() < NEAREST * spacing
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
    turned = [
        jnp.einsum(f"{axes}->abcd", stress, one, precision="highest") for axes in ("ad,bc", "ac,bd", "bd,ac", "bc,ad")
    ]
    return _tensor_to_voigt(sum(turned) / 2 - jnp.einsum("ab,cd->abcd", stress, one, precision="highest"))


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


class Bounds(NamedTuple):
    """Bounds on a modulus of an isotropic polycrystal.

    Attributes:
        voigt: for equal strain of all grains; the upper bound.
        reuss: for equal stress of all grains; the lower bound.
    """

    voigt: jax.Array
    reuss: jax.Array

    @property
    def hill(self) -> jax.Array:
        """The mean of the bounds, the usual estimate."""
        return (self.voigt + self.reuss) / 2


def bulk_modulus(stiffness: jax.Array) -> Bounds:
    """Return the bulk modulus; both bounds are ``K = -V dp/dV`` if the crystal is cubic.

    ``K_V = C_aabb / d^2`` and ``1 / K_R = S_aabb`` with S the inverse of the stiffness C. In two dimensions they are
    energies per area.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.

    Reference: Hill, Proc. Phys. Soc. A 65, 349 (1952), doi:10.1088/0370-1298/65/5/307.
    """
    operator, volumetric, _ = _operator(stiffness)
    compliance = jnp.linalg.inv(operator)
    return Bounds(
        voigt=voigt_bulk_modulus(stiffness),
        reuss=1 / (precise_product(volumetric, compliance, volumetric)),
    )


def shear_modulus(stiffness: jax.Array) -> Bounds:
    """Return the shear modulus; both bounds are equal if the material is isotropic.

    ``G_V = (C_abab - C_aabb / d) / m`` and ``1 / G_R = 4 (S_abab - S_aabb / d) / m`` with ``m = (d - 1) (d + 2)`` and S
    the inverse of the stiffness C.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.

    Reference: Hill, Proc. Phys. Soc. A 65, 349 (1952), doi:10.1088/0370-1298/65/5/307.
    """
    operator, volumetric, dimension = _operator(stiffness)
    compliance = _deviatoric(jnp.linalg.inv(operator), volumetric, dimension)
    return Bounds(voigt=voigt_shear_modulus(stiffness), reuss=_shears(dimension) / (4 * compliance))


def voigt_bulk_modulus(stiffness: jax.Array) -> jax.Array:
    """Return the upper bound of `bulk_modulus` alone, without a matrix inverse and so without a library call.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.
    """
    operator, volumetric, dimension = _operator(stiffness)
    return precise_product(volumetric, operator, volumetric) / dimension**2


def voigt_shear_modulus(stiffness: jax.Array) -> jax.Array:
    """Return the upper bound of `shear_modulus` alone, the mean over all directions, without a matrix inverse.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.
    """
    operator, volumetric, dimension = _operator(stiffness)
    return _deviatoric(operator, volumetric, dimension) / _shears(dimension)


def _deviatoric(matrix: jax.Array, volumetric: jax.Array, dimension: int) -> jax.Array:
    return jnp.trace(matrix) - precise_product(volumetric, matrix, volumetric) / dimension


def _shears(dimension: int) -> int:
    """Return twice the number of independent shears."""
    return (dimension - 1) * (dimension + 2)


def _operator(stiffness: jax.Array) -> tuple[jax.Array, jax.Array, int]:
    """Return the stiffness as an operator on strains in an orthonormal basis, the volumetric strain, and d."""
    dimension = 2 if len(stiffness) == 3 else 3
    is_volumetric = jnp.arange(len(stiffness)) < dimension
    weight = jnp.where(is_volumetric, 1, jnp.sqrt(jnp.asarray(2, stiffness.dtype)))
    return stiffness * weight[:, None] * weight, is_volumetric.astype(stiffness.dtype), dimension
