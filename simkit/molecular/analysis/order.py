"""Order of particles: bond-orientational order, contact networks, and the radial distribution function."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, prefers_whole_arrays, root
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.neighbors.neighbor_list import Excluded, NeighborList
from simkit.molecular.neighbors.pairs import Pairs, all_pairs, listed_pairs
from simkit.molecular.spaces import Cell, Components

# Comparisons of pairs with shells that an accelerator makes at once.
MOST_COMPARISONS = 1 << 24
# Blocks of comparisons without a loop.
MOST_UNROLLED = 4


@arguments(bins=whole("number of shells", low=1))
def radial_distribution(position: jax.Array, cell: jax.Array, *, reach: jax.Array | float, bins: int) -> jax.Array:
    """Return g(r) of one configuration, averaged over shells of equal thickness.

        g_k = V / N^2 n_k / v_k

    with n_k the number of ordered pairs whose distance by the nearest image is in shell k, and v_k the volume of that
    shell. An ideal gas has g = 1 - 1/N at every distance. It is a histogram, so its derivatives are zero. Pairs are
    counted in blocks, to limit memory.

    Args:
        position: length, (N, d); may lie outside the cell.
        cell: (d,) side lengths or (d, d) lattice vectors as rows.
        reach: scalar, length: outer radius of the last shell; at most half the smallest width of the cell.
        bins: number of shells. Good values: 20 to 50 per particle diameter.

    Returns:
        (bins,), shell k at the distance ``reach (k + 1/2) / bins``; NaN in shells beyond half the smallest width of the
        cell, where images are missing.

    Raises:
        UserError: if ``bins`` is below 1, or cell and positions have different dimensions.

    Reference: Allen, Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford (2017), section 8.2,
    doi:10.1093/oso/9780198803195.001.0001.
    """
    position, cell = jax.lax.stop_gradient((position, cell))
    reach = jax.lax.stop_gradient(jnp.asarray(reach, position.dtype))
    count, dimension = position.shape
    space = spaces.of_cell(cell, dimension)
    columns = tuple(position[:, axis] for axis in range(dimension))
    # An interpreter would write the comparisons to memory.
    at_once = _by_offsets if prefers_whole_arrays() else _by_blocks
    by_offsets, by_blocks = (functools.partial(method, bins=bins) for method in (_by_offsets, at_once))
    ordered = by_device(columns, cell, reach, cpu=by_offsets, accelerator=by_blocks)
    edges = reach * jnp.arange(bins + 1, dtype=position.dtype) / bins
    unit_ball = math.pi if dimension == 2 else 4 / 3 * math.pi
    volumes = unit_ball * (edges[1:] ** dimension - edges[:-1] ** dimension)
    distribution = ordered.astype(position.dtype) / volumes * (space.volume / count**2)
    # A reach of exactly half the width may exceed it by round-off.
    slack = 1 + 8 * jnp.finfo(position.dtype).eps
    return jnp.where(2 * edges[1:] <= slack * space.widths.min(), distribution, jnp.nan)


def _by_offsets(columns: Components, cell: Cell, reach: jax.Array, bins: int) -> jax.Array:
    """Return the number of ordered pairs in each shell, int32, (bins,)."""
    count = len(columns[0])
    # Concatenated with itself, so that the partners at an index offset k are one slice.
    doubled = tuple(jnp.concatenate([x, x]) for x in columns)

    def add(numbers: jax.Array, offset: jax.Array) -> tuple[jax.Array, None]:
        others = tuple(jax.lax.dynamic_slice_in_dim(x, offset, count) for x in doubled)
        # Pairs beyond the last shell and NaN positions are dropped.
        return numbers.at[_shells(columns, others, cell, reach, bins)].add(1, mode="drop"), None

    # Index offsets 1 ... (N - 1) / 2 give every pair once; for even N the offset N / 2 gives each of its pairs twice.
    numbers = jnp.zeros(bins, jnp.int32)
    numbers, _ = jax.lax.scan(add, numbers, jnp.arange(1, (count - 1) // 2 + 1, dtype=jnp.int32))
    ordered = 2 * numbers
    if count % 2 == 0:
        ordered = ordered + add(jnp.zeros(bins, jnp.int32), jnp.int32(count // 2))[0]
    return ordered


def _by_blocks(columns: Components, cell: Cell, reach: jax.Array, bins: int) -> jax.Array:
    """Return the result of `_by_offsets`: many offsets at once, and sums in place of additions to a few numbers."""
    count = len(columns[0])
    block = max(1, min(MOST_COMPARISONS // (count * bins), count // 2))
    offsets = np.arange(1, count // 2 + 1, dtype=np.int32)
    offsets = np.append(offsets, np.zeros(-len(offsets) % block, np.int32)).reshape(-1, block)
    weights = np.where(offsets == 0, 0, np.where(2 * offsets == count, 1, 2)).astype(np.int32)
    slots, numbers = jnp.arange(count, dtype=jnp.int32), jnp.arange(bins, dtype=jnp.int32)

    def add(ordered: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        offset, weight = (values[:, None] for values in part)
        others = tuple(x.at[(slots + offset) % count].get(mode="promise_in_bounds") for x in columns)
        shell = _shells(columns, others, cell, reach, bins)
        return ordered + jnp.sum(weight * (shell == numbers[:, None, None]), axis=(1, 2), dtype=jnp.int32), None

    parts = jnp.asarray(offsets), jnp.asarray(weights)
    return jax.lax.scan(add, jnp.zeros(bins, jnp.int32), parts, unroll=len(offsets) <= MOST_UNROLLED)[0]


def _shells(columns: Components, others: Components, cell: Cell, reach: jax.Array, bins: int) -> jax.Array:
    """Return the shell of each pair, int32; ``bins`` beyond the last."""
    space = spaces.of_cell(cell, len(columns))
    apart = space.separation(tuple(x - y for x, y in zip(columns, others, strict=True)))
    distance = jnp.sqrt(sum(d * d for d in apart))
    return jnp.where(distance < reach, (distance * (bins / reach)).astype(jnp.int32), bins)


def shell_centers(reach: float, bins: int) -> np.ndarray:
    """Return the distances in the middle of the shells, (bins,).

    Args:
        reach: outer radius of the last shell, length.
        bins: number of shells.
    """
    return reach * (np.arange(bins) + 0.5) / bins


def highest_peak(distribution: jax.Array, reach: float) -> tuple[jax.Array, jax.Array]:
    """Return position and height of the highest peak, by a parabola through the highest shell and its neighbors.

    Args:
        distribution: g(r), (bins,), from `radial_distribution` or a mean of such.
        reach: outer radius of the last shell, length.
    """
    distribution = jax.lax.stop_gradient(distribution)
    bins = len(distribution)
    top = jnp.clip(jnp.argmax(distribution), 1, bins - 2)
    left, middle, right = distribution[top - 1], distribution[top], distribution[top + 1]
    curvature = left - 2 * middle + right
    # No parabola if the three are in line, or the highest shell is at the edge.
    offset = jnp.where(curvature < 0, (left - right) / (2 * jnp.where(curvature < 0, curvature, 1)), 0)
    offset = jnp.clip(offset, -0.5, 0.5)
    height = middle - (left - right) * offset / 4
    return (top + 0.5 + offset) * (reach / bins), height


# Each sweep removes one layer of rattlers; jammed packings need two or three.
RATTLER_SWEEPS = 32


class Contacts(NamedTuple):
    """The contacts, each listed at both particles.

    Attributes:
        touching: whether the entry is a contact, (N, K) booleans.
        partner: index of the other particle, int32, (N, K).
    """

    touching: jax.Array
    partner: jax.Array


def candidate_pairs(
    position: jax.Array, space: spaces.Space, neighbors: object, excluded: Excluded | None = None
) -> Pairs:
    """Return the listed pairs of particles, or all where there is no list.

    Args:
        position: length, (N, d).
        space: geometry of the cell.
        neighbors: neighbors of a pair interaction, current at the positions.
        excluded: pairs that are none, as the list has them; ``None`` for none of them.
    """
    if isinstance(neighbors, NeighborList):
        return listed_pairs(position, space, neighbors)
    return all_pairs(position, space, excluded=excluded)


def contact_network(pairs: Pairs, sigma: jax.Array) -> Contacts:
    """Return the pairs that overlap.

    Args:
        pairs: from `simkit.molecular.neighbors.pairs`, all or listed ones.
        sigma: contact distance of a pair, scalar or (N, K).
    """
    return Contacts(pairs.is_pair & (pairs.distance < sigma), pairs.partner)


def load_bearing(network: Contacts, dimension: int) -> jax.Array:
    """Return the mask of load-bearing particles, all but rattlers.

    Fewer than ``d + 1`` contacts cannot hold a frictionless particle; without such a rattler its neighbors may be
    rattlers too, so the test is repeated.

    Args:
        network: the contacts.
        dimension: d.

    Returns:
        Booleans, (N,); false for rattlers.
    """

    def peel(_: int, bearing: jax.Array) -> jax.Array:
        return bearing & ((network.touching & bearing[network.partner]).sum(axis=1) > dimension)

    return jax.lax.fori_loop(0, RATTLER_SWEEPS, peel, jnp.ones(len(network.touching), dtype=bool))


def contact_number(network: Contacts, bearing: jax.Array) -> jax.Array:
    """Return the contact number Z, the mean number of contacts between load-bearing particles.

    Args:
        network: the contacts.
        bearing: from `load_bearing`, (N,).

    Returns:
        Scalar; zero if no particle bears load.
    """
    contacts = (network.touching & bearing[:, None] & bearing[network.partner]).sum()
    return jnp.where(bearing.any(), contacts / jnp.maximum(bearing.sum(), 1), 0)


def contact_statistics(network: Contacts, dimension: int, kind: jnp.dtype) -> Arrays:
    """Return the ``contact_number`` and the ``rattler_fraction``.

    Args:
        network: the contacts.
        dimension: d.
        kind: floating-point type.
    """
    bearing = load_bearing(network, dimension)
    number = contact_number(network, bearing).astype(kind)
    return {"contact_number": number, "rattler_fraction": 1 - bearing.astype(kind).mean()}


def load(virial: jax.Array) -> jax.Array:
    """Return the virial of each particle, (N,), over the mean of all; zero where all are."""
    mean = virial.mean()
    return virial / jnp.where(mean > 0, mean, 1)


type Moments = tuple[jax.Array, jax.Array]


def bond_order(pairs: Pairs, degree: int = 6) -> jax.Array:
    """Return the bond order of each particle, Q_l.

    ``Q_l^2 = 4 pi / (2 l + 1) sum_m |q_lm|^2`` with ``q_lm`` the mean of the spherical harmonics ``Y_lm`` over the
    bonds of the particle. For l = 4 and 6: face-centered cubic 0.19094 and 0.57452, hexagonal close-packed 0.09722 and
    0.48476, body-centered cubic (8 + 6 neighbors) 0.03637 and 0.51069, icosahedron 0 and 0.66332.

    Args:
        pairs: of particles in three dimensions.
        degree: l. Good values: 4 and 6.

    Returns:
        Numbers in [0, 1], (N,).

    Raises:
        UserError: if the degree is negative or the space is not three-dimensional.

    Reference: Steinhardt, Nelson, Ronchetti, Phys. Rev. B 28, 784 (1983), doi:10.1103/PhysRevB.28.784.
    """
    real, imaginary = moments(pairs, degree)
    return _magnitude(real, imaginary, degree)


def third_order(pairs: Pairs, degree: int = 6) -> jax.Array:
    """Return the third-order invariant of each particle, normalized: W_l.

    ``W_l = sum (l l l; m1 m2 m3) q_lm1 q_lm2 q_lm3 / (sum_m |q_lm|^2)^(3/2)`` over ``m1 + m2 + m3 = 0``, with the
    Wigner 3j symbols. It distinguishes icosahedra, W_6 = -0.16975, from crystals, |W_6| = 0.0132 (cubic) and 0.0124
    (hexagonal), and the sign of W_4 hexagonal from face-centered cubic. For odd l it vanishes.

    Args:
        pairs: of particles in three dimensions.
        degree: l, even. If Q_l vanishes W_l is undefined, and zero is returned if Q_l is exactly zero.

    Returns:
        Numbers, (N,).

    Raises:
        UserError: as for `bond_order`.

    Reference: as for `bond_order`.
    """
    real, imaginary = moments(pairs, degree)
    # q_l(-m) = (-1)^m conj(q_lm)
    sign = (-1.0) ** jnp.arange(degree, 0, -1)
    full = jax.lax.complex(
        jnp.concatenate([sign * real[:, :0:-1], real], axis=1),
        jnp.concatenate([-sign * imaginary[:, :0:-1], imaginary], axis=1),
    )
    triples = [
        (m1, m2, -m1 - m2)
        for m1 in range(-degree, degree + 1)
        for m2 in range(max(-degree, -degree - m1), min(degree, degree - m1) + 1)
    ]
    weights = jnp.asarray([wigner_3j(degree, m1, m2) for m1, m2, _ in triples], real.dtype)
    first, second, third = (full[:, degree + np.array(column)] for column in zip(*triples, strict=True))
    total = jnp.sum(weights * (first * second * third).real, axis=1)
    squared = jnp.sum(full.real**2 + full.imag**2, axis=1)
    is_positive = squared > 0
    return jnp.where(is_positive, total / jnp.where(is_positive, squared, 1) ** 1.5, 0)


def polygon_order(pairs: Pairs, bonds: jax.Array, corners: int) -> jax.Array:
    """Return the order of the bonds of each particle in two dimensions relative to the corners of a regular polygon.

    ``|sum_j exp(i k theta_ij)| / max(n_i, k)``, ``theta_ij`` the direction of bond j, ``n_i`` the number of bonds and k
    the number of corners: 1 for one bond to each corner, less for a missing bond, 0 without bonds.

    Args:
        pairs: of particles in two dimensions.
        bonds: mask of the pairs that are bonds, (N, K) booleans.
        corners: k; 6 for a triangular crystal, 3 for a honeycomb.

    Returns:
        (N,), from 0 to 1.

    Reference: Nelson, Halperin, Phys. Rev. B 19, 2457 (1979), doi:10.1103/PhysRevB.19.2457.
    """
    real, imaginary = (jnp.where(bonds, part, 0).sum(axis=1) for part in _turned(pairs, corners))
    return root(real**2 + imaginary**2) / jnp.maximum(bonds.sum(axis=1), corners)


def _turned(pairs: Pairs, fold: int) -> Moments:
    """Return ``exp(i k theta)`` of every pair in the plane."""
    x, y = (component * pairs.inverse_distance for component in pairs.separation)
    power = jnp.ones_like(x), jnp.zeros_like(y)
    for _ in range(fold):
        power = _times(power, (x, y))
    return power


def moments(pairs: Pairs, degree: int) -> Moments:
    """Return the mean of the spherical harmonics over the bonds of each particle, q_lm for m = 0 ... l.

    Args:
        pairs: of particles in three dimensions.
        degree: l.

    Returns:
        Real and imaginary part, (N, l + 1) each. For negative m, ``q_l(-m) = (-1)^m conj(q_lm)``.

    Raises:
        UserError: as for `bond_order`.
    """
    harmonics = _harmonics(pairs, degree)
    real, imaginary = (
        jnp.stack([_mean_over_bonds(order[part], pairs) for order in harmonics], axis=-1) for part in (0, 1)
    )
    return real, imaginary


@arguments(degree=whole("degree of the harmonics"))
def _harmonics(pairs: Pairs, degree: int) -> list[Moments]:
    """Return Y_lm of every bond, m = 0 ... l, as polynomials in the components of its unit vector.

    ``Y_lm = c_lm (P_l^m(z) / sin^m) (x + i y)^m`` contains no angles, so derivatives are finite at the poles.
    """
    if (dimension := len(pairs.separation)) != 3:
        raise UserError(f"bond_order is for 3 dimensions, and the particles have {dimension}; use polygon_order")
    x, y, z = (component * pairs.inverse_distance for component in pairs.separation)
    harmonics, power = [], (jnp.ones_like(x), jnp.zeros_like(y))
    for m in range(degree + 1):
        # sqrt((2 l + 1) / (4 pi) (l - m)! / (l + m)!) makes the harmonics orthonormal.
        norm = math.sqrt((2 * degree + 1) / (4 * math.pi) * math.factorial(degree - m) / math.factorial(degree + m))
        along = norm * _legendre(degree, m, z)
        harmonics.append((along * power[0], along * power[1]))
        power = _times(power, (x, y))
    return harmonics


def _legendre(degree: int, m: int, z: jax.Array) -> jax.Array:
    """Return P_l^m(z) / sin^m with the Condon-Shortley phase, by the recursion in l that is stable upward."""
    before = jnp.zeros_like(z)
    # (-1)^m (2 m - 1)!!
    current = jnp.full_like(z, (-1) ** m * math.prod(range(1, 2 * m, 2)))
    for n in range(m + 1, degree + 1):
        before, current = current, ((2 * n - 1) * z * current - (n + m - 1) * before) / (n - m)
    return current


def _times(a: Moments, b: Moments) -> Moments:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _mean_over_bonds(values: jax.Array, pairs: Pairs) -> jax.Array:
    return jnp.where(pairs.is_pair, values, 0).sum(axis=1) / jnp.maximum(pairs.is_pair.sum(axis=1), 1)


def _magnitude(real: jax.Array, imaginary: jax.Array, degree: int) -> jax.Array:
    each = real**2 + imaginary**2
    # Magnitudes of m and -m are equal.
    return root(4 * math.pi / (2 * degree + 1) * (2 * each.sum(axis=-1) - each[..., 0]))


@functools.cache
def wigner_3j(degree: int, m1: int, m2: int) -> float:
    """Return the Wigner 3j symbol ``(l l l; m1 m2 -m1-m2)``, by the Racah formula with exact integers.

    Args:
        degree: l.
        m1: in [-l, l].
        m2: in [-l, l], with ``|m1 + m2| <= l``.

    Reference: Edmonds, Angular Momentum in Quantum Mechanics, Princeton (1957), section 3.7.
    """
    m3, fact = -m1 - m2, math.factorial
    terms = 0.0
    for k in range(max(0, -m1, m2), min(degree, degree - m1, degree + m2) + 1):
        below = fact(k) * fact(degree - k) * fact(degree - m1 - k) * fact(degree + m2 - k) * fact(k + m1) * fact(k - m2)
        terms += (-1) ** k / below
    size = math.prod(fact(degree + m) * fact(degree - m) for m in (m1, m2, m3))
    triangle = fact(degree) ** 3 / fact(3 * degree + 1)
    return (-1) ** m3 * math.sqrt(triangle * size) * terms
