"""Ewald summation: the Coulomb energy of charges in a periodic cell of any shape.

The charge of each particle is screened by a Gaussian of the opposite charge. The energy is then a sum over pairs within
a cut-off, a sum over wave vectors, and corrections; `charge_interaction` adds these parts, whatever makes the second.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, combined
from simkit.molecular.interactions.pair_interaction import Method, pair_interaction
from simkit.molecular.neighbors.pair_sums import PairParameter, PerParticle
from simkit.molecular.potentials.coulomb import coulomb
from simkit.molecular.spaces import Cell


class Charges(NamedTuple):
    """Charges of the particles, and how their Coulomb energy is split.

    Attributes:
        charge: of each particle, (N,).
        cutoff: length, at most half the smallest width of the cell.
        damping: alpha, 1 / length; the screening Gaussian is ``exp(-alpha^2 r^2)``.
        constant: k, energy of two unit charges at unit distance.

    Example:
        >>> molecular.electrostatics.Charges(jnp.array([1.0, -1.0]), cutoff=9.0, damping=0.35).constant
        1.0
    """

    charge: jax.Array
    cutoff: jax.Array | float
    damping: jax.Array | float
    constant: jax.Array | float = 1.0


class Reciprocal(Protocol):
    """Energy of the Gaussians of all charges and images, with their own energies, for k = 1."""

    def __call__(self, fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array) -> jax.Array:
        """Return the energy of coordinates in units of the lattice vectors, (N, 3), in a cell (3, 3)."""
        ...


def of_params(params: Params) -> Charges:
    """Return the charges of params ``charge``, ``cutoff``, ``damping`` and ``coulomb_constant``, by default 1."""
    return Charges(params["charge"], params["cutoff"], params["damping"], params.get("coulomb_constant", 1.0))


def ewald(
    wave_vectors: np.ndarray,
    *,
    charges: Callable[[Params], Charges] = of_params,
    excluded: np.ndarray | None = None,
    method: Method = "auto",
    skin: float = 0.1,
    capacity: int | None = None,
) -> Interaction:
    """Return the Coulomb interaction of charges in a periodic cell by Ewald summation, with conducting surroundings.

        E / k = sum_{i<j} q_i q_j erfc(alpha r) / r + 2 pi / V sum_n exp(-k^2 / 4 alpha^2) / k^2 |S(k)|^2
                - alpha / sqrt(pi) sum_i q_i^2 - pi Q^2 / (2 V alpha^2),    S(k) = sum_i q_i exp(i k . r_i)

    where the first sum ends at the cut-off. A cell of total charge Q is neutralized by a uniform background, the last
    term. Of excluded pairs no energy remains. Energy, force and stress are differentiable by positions, charges and
    cell.

    Cost and memory are proportional to N M, for M wave vectors: for more than a few thousand particles take
    `particle_mesh_ewald`. `split` gives a damping and wave vectors for a tolerance.

    Args:
        wave_vectors: integers n, (M, 3), for ``k = 2 pi n / cell``; those of opposite sign are included, zero is not.
        charges: ``params -> Charges``; by default of params ``charge``, ``cutoff``, ``damping``, ``coulomb_constant``.
        excluded: pairs of particles without Coulomb energy, (K, 2); their separation is that of nearest images.
        method: how pairs are found, see `simkit.molecular.interactions.pair_interaction`.
        skin: of the neighbor list, in units of the cut-off.
        capacity: neighbors per particle that the list can hold, see `simkit.molecular.interactions.pair_interaction`.

    Raises:
        UserError: if wave vectors are no (M, 3) integers; when it is used, in free space and in two dimensions.

    Example:
        >>> crystal = molecular.structures.rocksalt((1, 1, 1), spacing=1.0)
        >>> waves = molecular.electrostatics.wave_vectors(crystal.cell, 28.0)
        >>> charge = jnp.where(jnp.arange(8) < 4, 1.0, -1.0)
        >>> coulomb, x, cell = molecular.electrostatics.ewald(waves), crystal.position, crystal.cell
        >>> params = {"charge": charge, "cutoff": 1.0, "damping": 4.0}
        >>> energy = coulomb.energy(x, cell, params, coulomb.prepare(x, cell, params))
        >>> print(f"{-energy / 4:.4f}: the constant of Madelung")
        1.7476: the constant of Madelung

    Reference: Ewald, Ann. Phys. 369, 253 (1921), doi:10.1002/andp.19213690304; background: Bogusz, Cheatham, Brooks,
    J. Chem. Phys. 108, 7070 (1998), doi:10.1063/1.476320.
    """
    reciprocal = _wave_sum(np.asarray(wave_vectors))
    options: PairOptions = {"method": method, "skin": skin, "capacity": capacity}
    return charge_interaction(reciprocal, charges, excluded, options)


class PairOptions(TypedDict):
    """How the pairs are found; see `simkit.molecular.interactions.pair_interaction`."""

    method: Method
    skin: float
    capacity: int | None


def charge_interaction(
    reciprocal: Reciprocal, charges: Callable[[Params], Charges], excluded: np.ndarray | None, options: PairOptions
) -> Interaction:
    """Return the Coulomb interaction whose smooth part is given; see `ewald`.

    Args:
        reciprocal: energy of the Gaussians.
        charges: ``params -> Charges``.
        excluded: as for `ewald`.
        options: of the sum over pairs.
    """

    def of_pairs(params: Params) -> dict[str, PairParameter]:
        now = charges(params)
        # One number of each pair, their product, instead of two.
        product = PerParticle(now.charge, jnp.multiply)
        constant = jnp.asarray(now.constant, now.charge.dtype)
        damping = jnp.asarray(now.damping, now.charge.dtype)
        return {
            "charge_i": product,
            "charge_j": jnp.ones((), now.charge.dtype),
            "coulomb_constant": constant,
            "damping": damping,
        }

    pairs = pair_interaction(
        coulomb(),
        cutoff=lambda params: jnp.asarray(charges(params).cutoff),
        parameters=of_pairs,
        **options,
    )
    couples = np.zeros((0, 2), np.int32) if excluded is None else np.asarray(excluded, np.int32).reshape(-1, 2)

    def smooth(fraction: jax.Array, cell: jax.Array, params: Params) -> jax.Array:
        now = charges(params)
        kind = fraction.dtype
        charge, damping = jnp.asarray(now.charge, kind), jnp.asarray(now.damping, kind)
        if charge.shape != (len(fraction),):
            raise UserError(
                f"charges have shape {charge.shape}, and there are {len(fraction)} particles; give one each"
            )
        energy = reciprocal(fraction, cell, charge, damping) - damping / math.sqrt(math.pi) * jnp.sum(charge**2)
        background = math.pi * jnp.sum(charge) ** 2 / (2 * jnp.abs(spaces.determinant(cell)) * damping**2)
        if len(couples):
            cutoff = jnp.asarray(now.cutoff, kind)
            energy = energy - _excluded_energy(fraction, cell, charge, damping, cutoff, couples)
        return jnp.asarray(now.constant, kind) * (energy - background)

    return combined(pairs, fractional_interaction(smooth))


def fractional_interaction(energy: Callable[[jax.Array, jax.Array, Params], jax.Array]) -> Interaction:
    """Return the interaction of an energy of coordinates in units of the lattice vectors, in a cell of volume.

    Args:
        energy: ``(fraction, cell, params) -> E`` of (N, 3) and (3, 3), unchanged if a coordinate changes by one.
    """

    def placed(position: jax.Array, cell: Cell) -> tuple[jax.Array, jax.Array]:
        if cell is None or position.shape[1] != 3:
            raise UserError("charges by Ewald summation need a cell that repeats along three axes; give one")
        vectors = spaces.lattice_vectors(jnp.asarray(cell, position.dtype))
        # Along an infinite side nothing repeats, and there is no volume: NaN instead of a wrong value.
        vectors = jnp.where(jnp.isfinite(vectors).all(), vectors, jnp.nan)
        fraction = precise_product(position, spaces.inverse_of(vectors))
        # Far outside the cell phases would lose digits.
        return fraction - jax.lax.stop_gradient(jnp.floor(fraction)), vectors

    def total(position: jax.Array, cell: Cell, params: Params, _: Any) -> jax.Array:
        return energy(*placed(position, cell), params)

    def stress(position: jax.Array, cell: Cell, params: Params, _: Any) -> jax.Array:
        # Fractional coordinates do not change with strain.
        fraction, vectors = placed(position, cell)
        unit = jnp.eye(3, dtype=position.dtype)

        def strained(strain: jax.Array) -> jax.Array:
            return energy(fraction, precise_product(vectors, unit + (strain + strain.T) / 2), params)

        return jax.grad(strained)(jnp.zeros_like(unit)) / jnp.abs(spaces.determinant(vectors))

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=total,
        force=lambda *at: -jax.grad(total)(*at),
        stress=stress,
        is_translation_invariant=True,
    )


def _excluded_energy(
    fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array, cutoff: jax.Array, couples: np.ndarray
) -> jax.Array:
    """Return the energy of excluded pairs that the sums over pairs and wave vectors contain, for k = 1."""
    if couples.max() >= len(fraction):
        raise UserError(f"excluded pairs name particle {couples.max()}, and there are {len(fraction)}")
    first, second = jnp.asarray(couples[:, 0]), jnp.asarray(couples[:, 1])
    apart = fraction[first] - fraction[second]
    apart = precise_product(apart - jax.lax.stop_gradient(jnp.round(apart)), cell)
    squared = jnp.sum(apart * apart, axis=1)
    near = squared < cutoff * cutoff
    distance = jnp.sqrt(jnp.where(near, squared, cutoff * cutoff))
    of_pairs = jnp.where(near, jax.lax.erfc(damping * distance) / distance, 0)
    return jnp.sum(charge[first] * charge[second] * (of_pairs + damping * erf_over(damping**2 * squared)))


def erf_over(squared: jax.Array) -> jax.Array:
    """Return ``erf(x) / x`` of the square of x, smooth at zero.

    Args:
        squared: x^2, any shape.
    """
    near = squared < 0.25
    inside, beyond = jnp.where(near, squared, 0), jnp.sqrt(jnp.where(near, 1, squared))
    series = jnp.zeros_like(inside)
    for order in reversed(range(12)):
        series = series * inside + (-1) ** order / (math.factorial(order) * (2 * order + 1))
    return jnp.where(near, 2 / math.sqrt(math.pi) * series, jax.lax.erf(beyond) / beyond)


def _wave_sum(wave_vectors: np.ndarray) -> Reciprocal:
    """Return the sum over wave vectors, as one matrix product over the particles.

    Those with n_1 >= 0 suffice. Phases along the three axes multiply, so that S of all n in a box is a product of a
    matrix by n_1 and n_2, and one by n_3; vectors that are not asked for have no weight.
    """
    if wave_vectors.ndim != 2 or wave_vectors.shape[1] != 3 or not np.issubdtype(wave_vectors.dtype, np.integer):
        raise UserError(f"wave vectors have shape {wave_vectors.shape}; give integers, (M, 3)")
    most = np.abs(wave_vectors).max(axis=0, initial=0)
    chosen = np.zeros(2 * most + 1)
    for sign in (1, -1):
        chosen[tuple((most + sign * wave_vectors).T)] = 1
    chosen[tuple(most)] = 0
    weight = chosen[most[0] :]
    # Opposite vectors outside the plane n_1 = 0 are listed once.
    weight[1:] *= 2
    weight = weight.reshape(-1, weight.shape[-1])
    numbers = [np.arange(0, most[0] + 1), *(np.arange(-each, each + 1) for each in most[1:])]
    grid = np.stack(np.meshgrid(*numbers, indexing="ij"), axis=-1).reshape(*weight.shape, 3)

    def energy(fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array) -> jax.Array:
        kind = fraction.dtype
        (c1, s1), (c2, s2), (c3, s3) = (_phases(each, x) for each, x in zip(numbers, fraction.T, strict=True))
        cosine = (c1[:, None] * c2 - s1[:, None] * s2).reshape(-1, len(charge)) * charge
        sine = (s1[:, None] * c2 + c1[:, None] * s2).reshape(-1, len(charge)) * charge
        product = precise_product(jnp.concatenate([cosine, sine]), jnp.concatenate([c3, s3]).T)
        rows, columns = weight.shape
        real = product[:rows, :columns] - product[rows:, columns:]
        imaginary = product[rows:, :columns] + product[:rows, columns:]
        wave = 2 * math.pi * precise_product(jnp.asarray(grid, kind), spaces.inverse_of(cell).T)
        is_used = jnp.asarray(weight > 0)
        squared = jnp.where(is_used, jnp.sum(wave**2, axis=-1), 1)
        factor = jnp.where(is_used, jnp.asarray(weight, kind) * jnp.exp(-squared / (4 * damping**2)) / squared, 0)
        return 2 * math.pi / jnp.abs(spaces.determinant(cell)) * jnp.sum(factor * (real**2 + imaginary**2))

    return energy


def _phases(numbers: np.ndarray, fraction: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return cosine and sine of ``2 pi n s``, (n, N) each."""
    turns = jnp.asarray(numbers, fraction.dtype)[:, None] * fraction
    angle = 2 * math.pi * (turns - jax.lax.stop_gradient(jnp.round(turns)))
    return jnp.cos(angle), jnp.sin(angle)


def wave_vectors(cell: np.ndarray | jax.Array, largest: float) -> np.ndarray:
    """Return the integers n, (M, 3), of all wave vectors ``k = 2 pi n / cell`` up to a length; of k and -k, one.

    Args:
        cell: lattice vectors as rows, (3, 3), or sides, (3,).
        largest: length of the longest, 1 / length.

    Example:
        >>> molecular.electrostatics.wave_vectors(2 * np.pi * np.eye(3), 1.0).tolist()
        [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    vectors = np.asarray(cell, float)
    vectors = np.diag(vectors) if vectors.ndim == 1 else vectors
    # n_a = k . a_a / 2 pi is at most this.
    most = np.floor(largest * np.linalg.norm(vectors, axis=1) / (2 * math.pi) * (1 + 1e-9)).astype(int)
    axes = [np.arange(-each, each + 1) for each in most]
    numbers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    # The second half of the list has the opposite vectors of the first, zero in its middle.
    numbers = numbers[len(numbers) // 2 + 1 :]
    wave = 2 * math.pi * numbers @ np.linalg.inv(vectors).T
    return numbers[np.linalg.norm(wave, axis=1) <= largest * (1 + 1e-9)]


class Split(NamedTuple):
    """How Coulomb energies are split between pairs and wave vectors, for a tolerance.

    Attributes:
        damping: alpha times the cut-off.
        largest: longest wave vector times the cut-off.

    Example:
        >>> print(f"{molecular.electrostatics.split(1e-5).damping:.4f}")
        3.1234
    """

    damping: float
    largest: float


def split(tolerance: float) -> Split:
    """Return damping and longest wave vector, in units of the cut-off, that both sums need for a tolerance.

    With ``erfc(s) = tolerance`` the damping is s, and the longest wave vector 2 s^2: what pairs beyond the cut-off and
    longer waves lack is this fraction of the Coulomb energy of single charges at that distance.

    Args:
        tolerance: relative error, in (0, 1).

    Example:
        >>> print(f"{molecular.electrostatics.split(1e-5).largest:.2f}")
        19.51
    """
    low, high = 0.0, 27.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > tolerance else (low, middle)
    return Split(low, 2 * low * low)
