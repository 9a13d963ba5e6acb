"""Phonons of crystals: dynamical matrices at wave vectors, dispersion along paths, and densities of states."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.analysis.elasticity import current_neighbors, hessian_vector_product, squared_frequencies
from simkit.molecular.interactions.interaction import Interaction

__all__ = ["Phonons", "density_of_states", "mesh", "path", "phonons", "supercell"]

# Relative difference of squared distances within which images are equally near.
EQUALLY_NEAR = 1e-5
# Force constant at equally near images, relative to the largest, above which the supercell is too small.
OUT_OF_RANGE = 1e-6


class Phonons(NamedTuple):
    """Phonons at wave vectors.

    Attributes:
        frequency: angular, 1 / time, (Q, P d), ascending; minus the growth rate of an unstable mode.
        matrix: dynamical matrices, 1 / time^2, (Q, P d, P d), complex and Hermitian; row ``d i + a`` is component a of
            particle i.

    Example:
        >>> flat = molecular.phonons.Phonons(frequency=jnp.zeros((1, 2)), matrix=jnp.zeros((1, 2, 2), complex))
        >>> flat.frequency.shape
        (1, 2)
    """

    frequency: jax.Array
    matrix: jax.Array


def supercell(position: jax.Array, cell: jax.Array, repeats: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Return the positions, (N, d), and lattice vectors, (d, d), of copies of a unit cell; its own particles are first.

    Args:
        position: of the unit cell, length, (P, d).
        cell: lattice vectors of the unit cell as rows, length, (d, d).
        repeats: number of copies along each lattice vector.

    Example:
        >>> position, cell = molecular.phonons.supercell(jnp.zeros((1, 2)), jnp.eye(2), (3, 1))
        >>> position.tolist(), cell.tolist()
        ([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]])
    """
    return spaces.repeated(position, cell, repeats)


def path(cell: jax.Array, corners: Any, points: int) -> tuple[jax.Array, jax.Array]:
    """Return wave vectors on straight lines between corners, 1 / length, (Q, d), and the distance along them, (Q,).

    Args:
        cell: lattice vectors of the unit cell as rows, length, (d, d).
        corners: in units of the reciprocal lattice vectors, (C, d).
        points: wave vectors from one corner to the next, so that ``Q = points (C - 1) + 1``.

    Example:
        >>> vectors, along = molecular.phonons.path(2 * jnp.eye(2), [[0, 0], [0.5, 0]], points=2)
        >>> print(np.round(vectors / np.pi, 3).tolist(), np.round(along / np.pi, 3).tolist())
        [[0.0, 0.0], [0.25, 0.0], [0.5, 0.0]] [0.0, 0.25, 0.5]
    """
    corners = np.asarray(corners, float)
    shares = np.arange(points)[:, None] / points
    lines = [first + shares * (last - first) for first, last in itertools.pairwise(corners)]
    vectors = _cartesian(np.concatenate([*lines, corners[-1:]]), cell)
    squared = jnp.sum(jnp.diff(vectors, axis=0) ** 2, axis=1)
    return vectors, jnp.concatenate([jnp.zeros_like(squared[:1]), jnp.cumsum(jnp.sqrt(squared))])


def mesh(cell: jax.Array, counts: tuple[int, ...]) -> jax.Array:
    """Return wave vectors that fill the Brillouin zone evenly, 1 / length, (Q, d).

    Args:
        cell: lattice vectors of the unit cell as rows, length, (d, d).
        counts: wave vectors along each reciprocal lattice vector.

    Example:
        >>> print(np.round(molecular.phonons.mesh(jnp.eye(2), (2, 1)) / np.pi, 3).tolist())
        [[-0.5, 0.0], [0.5, 0.0]]

    Reference: Monkhorst and Pack, Phys. Rev. B 13, 5188 (1976), doi:10.1103/PhysRevB.13.5188.
    """
    axes = [(2 * np.arange(count) + 1 - count) / (2 * count) for count in counts]
    return _cartesian(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts)), cell)


def _cartesian(fractions: np.ndarray, cell: jax.Array) -> jax.Array:
    return 2 * jnp.pi * precise_product(jnp.asarray(fractions, cell.dtype), spaces.inverse_of(cell).T)


def phonons(
    interaction: Interaction,
    position: jax.Array,
    cell: jax.Array,
    params: Params,
    wave_vectors: jax.Array,
    *,
    repeats: tuple[int, ...],
    mass: jax.Array | float = 1.0,
    neighbors: Any = None,
) -> Phonons:
    """Return the phonons of a crystal, from the force constants of a supercell.

        D_ij(q) = (m_i m_j)^(-1/2) sum_l Phi_(i,jl) exp(i q . (r_jl - r_i)),    D u = omega^2 u

    Phi are minus the derivatives of the forces in `supercell` by displacements of the P particles of its first unit
    cell, and r_jl the images nearest to particle i. This is exact if no force constant reaches beyond half the
    supercell: for pairs within a cut-off, a supercell twice as wide as that; for many-body energies, whose forces
    depend on the neighbors of neighbors, four times. Constants of particles at exactly half the supercell are shared by
    the images on all sides; where those are not zero, the result is NaN except at the wave vectors of the supercell,
    where it is exact always. A supercell narrower than twice the cut-off of pairs has NaN everywhere. The acoustic sum
    rule holds by construction: the constant of a particle with itself is minus the sum of the others, so that
    translations cost nothing.

    Frequencies are differentiable by positions, cell, params, masses and wave vectors; of degenerate ones, only their
    sum; those that are zero within round-off are constants.

    Args:
        interaction: energy of the particles of the supercell, in the order of `supercell`.
        position: of the unit cell at rest, length, (P, d).
        cell: lattice vectors of the unit cell as rows, length, (d, d).
        params: of the interaction.
        wave_vectors: q, 1 / length, (Q, d), such as from `path` and `mesh`.
        repeats: copies of the unit cell along each lattice vector.
        mass: of the particles of the unit cell, scalar or (P,).
        neighbors: current in the supercell; ``None`` prepares them.

    Raises:
        UserError: if the shapes do not belong together.

    Example:
        >>> def springs(x, cell, params):  # a chain along x
        ...     stretch = jnp.roll(x[:, 0], -1).at[-1].add(cell[0, 0]) - x[:, 0] - params["a"]
        ...     return params["k"] / 2 * jnp.sum(stretch**2)
        >>> found = molecular.phonons.phonons(
        ...     molecular.interactions.user_energy(springs), jnp.zeros((1, 2)), jnp.diag(jnp.array([1.0, 9.0])),
        ...     {"k": 4.0, "a": 1.0}, jnp.array([[np.pi, 0.0]]), repeats=(4, 1),
        ... )
        >>> print(f"{found.frequency[0, -1]:.3f} = 2 sqrt(k / m)")
        4.000 = 2 sqrt(k / m)

    Reference: Parlinski, Li, Kawazoe, Phys. Rev. Lett. 78, 4063 (1997), doi:10.1103/PhysRevLett.78.4063.
    """
    count, dimension = position.shape
    weight = jnp.asarray(mass, position.dtype)
    of_axes = f"as many numbers as positions have axes, {dimension}"
    check_shape("wave_vectors", wave_vectors, of_axes, (*jnp.shape(wave_vectors)[:-1], dimension))
    check_shape("cell", cell, of_axes, (dimension,), (dimension, dimension))
    check_shape("repeats", repeats, of_axes, (dimension,))
    check_shape("mass", weight, f"one number or one for each of {count} particles", (), (count,))
    everywhere, box = supercell(position, cell, repeats)
    if neighbors is None:
        neighbors = current_neighbors(interaction, everywhere, box, params)
    product = hessian_vector_product(interaction, everywhere, box, params, neighbors=neighbors)
    unit = jnp.eye(count * dimension, everywhere.size, dtype=position.dtype).reshape(-1, *everywhere.shape)
    constants = jax.lax.map(product, unit, batch_size=min(len(unit), 32))
    constants = constants.reshape(count, dimension, len(everywhere), dimension)
    itself = jnp.arange(count)
    others = constants.at[itself, :, itself, :].set(0)
    constants = others.at[itself, :, itself, :].set(-others.sum(axis=2))

    columns = tuple(everywhere[None, :, axis] - position[:, None, axis] for axis in range(dimension))
    nearest = jnp.stack(spaces.of_cell(box, dimension).nearest_image(columns), axis=-1)
    shifts = precise_product(jnp.asarray(list(itertools.product((-1, 0, 1), repeat=dimension)), box.dtype), box)
    images = nearest[:, :, None] + shifts
    squared = jnp.sum(images**2, axis=-1)
    is_near = squared <= squared.min(axis=2, keepdims=True) * (1 + EQUALLY_NEAR)
    is_shared = is_near.sum(axis=2) > 1
    size = jnp.abs(constants).max(axis=(1, 3))
    too_small = jnp.where(is_shared, size, 0).max() > OUT_OF_RANGE * size.max()
    # Its energy would be NaN, whose derivatives are zero.
    is_cut = interaction.misses_pairs(box, params)
    root = jnp.sqrt(jnp.broadcast_to(weight, count))

    def at(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        angle = precise_product(images, q)
        shares = is_near / is_near.sum(axis=2, keepdims=True)
        cosine, sine = ((shares * wave(angle)).sum(axis=2) for wave in (jnp.cos, jnp.sin))
        parts = []
        for wave in (cosine, sine):
            folded = (constants * wave[:, None, :, None]).reshape(count, dimension, -1, count, dimension).sum(axis=2)
            folded = folded / root[:, None, None, None] / root[:, None]
            parts.append(folded.reshape(count * dimension, count * dimension))
        real, imaginary = (parts[0] + parts[0].T) / 2, (parts[1] - parts[1].T) / 2
        turns = precise_product(box, q) / (2 * jnp.pi)
        is_commensurate = (jnp.abs(turns - jnp.round(turns)) < EQUALLY_NEAR).all()
        real = jnp.where((too_small & ~is_commensurate) | is_cut, jnp.nan, real)
        # Each eigenvalue of the Hermitian matrix is one of this symmetric matrix twice.
        joint = jnp.concatenate(
            [jnp.concatenate([real, -imaginary], axis=1), jnp.concatenate([imaginary, real], axis=1)]
        )
        values, is_zero = squared_frequencies(joint)
        values, is_zero = values.reshape(-1, 2).mean(axis=1), is_zero.reshape(-1, 2).all(axis=1)
        values = jnp.where(is_zero, jax.lax.stop_gradient(values), values)
        size = jnp.sqrt(jnp.where(values == 0, 1, jnp.abs(values))) * (values != 0)
        return jnp.where(values < 0, -size, size), jax.lax.complex(real, imaginary)

    return Phonons(*jax.lax.map(at, wave_vectors))


def density_of_states(frequency: jax.Array, at: jax.Array, width: jax.Array | float) -> jax.Array:
    """Return the density of states per unit cell, time, (K,): its integral is the number of branches.

    Every phonon is a Gaussian around its frequency.

    Args:
        frequency: of phonons at wave vectors that fill the zone evenly, 1 / time, (Q, B).
        at: frequencies at which it is evaluated, 1 / time, (K,).
        width: standard deviation of the Gaussian, 1 / time.

    Example:
        >>> at = jnp.linspace(0.0, 4.0, 401)
        >>> density = molecular.phonons.density_of_states(jnp.array([[1.0, 3.0], [1.5, 2.5]]), at, 0.1)
        >>> print(f"{jnp.sum(density) * (at[1] - at[0]):.3f} branches")
        2.000 branches
    """

    def one(center: jax.Array) -> jax.Array:
        return jnp.exp(-(((center - frequency) / width) ** 2) / 2).sum()

    return jax.lax.map(one, at, batch_size=32) / (len(frequency) * width * jnp.sqrt(2 * jnp.pi))
