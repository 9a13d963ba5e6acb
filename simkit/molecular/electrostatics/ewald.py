"""Ewald summation: the Coulomb energy of charges in a periodic cell of any shape.

The charge of each particle is screened by a Gaussian of the opposite charge. The energy is then a sum over pairs within
a cut-off, a sum over wave vectors, and corrections.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.core.parts import part
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.electrostatics.charges import (
    PART,
    ROOM,
    SHORTER,
    SKIN,
    Charges,
    PairOptions,
    Reciprocal,
    charge_interaction,
    of_params,
    of_tolerance,
    split,
)
from simkit.molecular.interactions.interaction import Interaction, ManyBody
from simkit.molecular.interactions.pair_interaction import Method
from simkit.molecular.spaces import Space


@part(**PART)
def many_body(tolerance: float = 1e-5) -> ManyBody:
    """Return the Ewald sum as scenario files name it, of the particles' ``charge``; see `ewald`.

    Where no cut-off is given, it is that of least work, at most half the narrowest width of the cell. Wave vectors
    and images suffice for cells up to a tenth longer or shorter than at the default parameters; beyond, energies are
    NaN.
    """
    chosen = split(tolerance)

    def summed(cell: np.ndarray, cutoff: float) -> tuple[Reciprocal, np.ndarray]:
        waves = wave_vectors(ROOM * cell, chosen.largest / cutoff)
        return _wave_sum(waves), np.abs(waves).max(axis=0, initial=0)

    def usual_cutoff(space: Space, count: int) -> jax.Array:
        # 20 ns for a pair within the cut-off, 3 ns for a particle and a wave vector.
        least_work = 0.4 * chosen.damping * (space.volume**2 / count) ** (1 / 6)
        return jnp.minimum(0.45 * space.widths.min(), least_work)

    return of_tolerance(chosen, summed, usual_cutoff)


def ewald(
    wave_vectors: np.ndarray,
    *,
    charges: Callable[[Params], Charges] = of_params,
    excluded: np.ndarray | None = None,
    method: Method = "auto",
    skin: float = SKIN,
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

    Raises:
        UserError: if they are too many.

    Example:
        >>> molecular.electrostatics.wave_vectors(2 * np.pi * np.eye(3), 1.0).tolist()
        [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    vectors = np.asarray(cell, float)
    vectors = np.diag(vectors) if vectors.ndim == 1 else vectors
    numbers = spaces.wave_numbers(vectors, largest, f"an Ewald sum up to a wave number of {largest:g}", SHORTER)
    numbers = numbers[len(numbers) // 2 + 1 :]
    wave = 2 * math.pi * numbers @ np.linalg.inv(vectors).T
    return numbers[np.linalg.norm(wave, axis=1) <= largest * (1 + 1e-9)]
