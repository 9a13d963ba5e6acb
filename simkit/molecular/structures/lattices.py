"""Perfect crystal lattices: positions of the particles and periodic cell."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_shape
from simkit.core.compilation import compiled
from simkit.molecular.spaces import check_particles

# c / a of the hexagonal close packing of spheres.
IDEAL_RATIO = math.sqrt(8 / 3)

FACE_CENTERED: list[tuple[float, ...]] = [(0, 0, 0), (0, 1 / 2, 1 / 2), (1 / 2, 0, 1 / 2), (1 / 2, 1 / 2, 0)]


class Lattice(NamedTuple):
    """Particles of a crystal in a periodic cell.

    Attributes:
        position: length, (N, d).
        cell: length, (d, d), diagonal; rows are the lattice vectors.

    Example:
        >>> chain = molecular.structures.Lattice(
        ...     position=jnp.array([[0.0, 0.0], [1.0, 0.0]]), cell=jnp.array([[2.0, 0.0], [0.0, 1.0]])
        ... )
        >>> print(f"density {len(chain.position) / np.linalg.det(chain.cell):.1f}")
        density 1.0
    """

    position: jax.Array
    cell: jax.Array


def square(repeats: tuple[int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return a square lattice, one particle per unit cell, 4 nearest neighbors.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not two positive integers.

    Example:
        >>> lattice = molecular.structures.square((3, 2), spacing=1.5)
        >>> lattice.position.shape, np.diag(lattice.cell).tolist()
        ((6, 2), [4.5, 3.0])
    """
    return _crystal([(0, 0)], (1, 1), repeats, spacing)


def triangular(repeats: tuple[int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return a triangular lattice, the densest packing of equal disks, 6 nearest neighbors.

    The unit cell is the rectangle ``spacing x sqrt(3) spacing`` with two particles.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not two positive integers.

    Example:
        >>> lattice = molecular.structures.triangular((3, 2))
        >>> fraction = len(lattice.position) * np.pi / 4 / np.linalg.det(lattice.cell)
        >>> print(f"{len(lattice.position)} disks, packing fraction {fraction:.4f} = pi / sqrt(12)")
        12 disks, packing fraction 0.9069 = pi / sqrt(12)
    """
    return _crystal([(0, 0), (1 / 2, 1 / 2)], (1, math.sqrt(3)), repeats, spacing)


def honeycomb(repeats: tuple[int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return a honeycomb lattice, as in graphene, 3 nearest neighbors.

    The unit cell is the rectangle ``sqrt(3) spacing x 3 spacing`` with four particles.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not two positive integers.

    Example:
        >>> graphene = molecular.structures.honeycomb((2, 2), spacing=1.42)
        >>> print(graphene.position.shape, np.diag(graphene.cell).round(2))
        (16, 2) [4.92 8.52]
    """
    sites = [(0, 0), (0, 1 / 3), (1 / 2, 1 / 2), (1 / 2, 5 / 6)]
    return _crystal(sites, (math.sqrt(3), 3), repeats, spacing)


def face_centered_cubic(repeats: tuple[int, int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return a face-centered cubic crystal, close-packed in the order ABC, 12 nearest neighbors.

    The unit cell is a cube of side ``sqrt(2) spacing`` (the lattice constant) with four particles.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> argon = molecular.structures.face_centered_cubic((2, 2, 2), spacing=3.72)
        >>> print(len(argon.position), np.diag(argon.cell / 2).round(2))
        32 [5.26 5.26 5.26]
    """
    return _crystal(FACE_CENTERED, (math.sqrt(2),) * 3, repeats, spacing)


def hexagonal_close_packed(
    repeats: tuple[int, int, int],
    *,
    spacing: jax.Array | float = 1.0,
    ratio: jax.Array | float = IDEAL_RATIO,
) -> Lattice:
    """Return a hexagonal close-packed crystal, close-packed in the order AB, 12 nearest neighbors.

    The unit cell is the box ``spacing x sqrt(3) spacing x ratio spacing`` with four particles, the layers along z.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors within a layer (the lattice constant a), length; may be traced.
        ratio: c / a; with sqrt(8/3) neighbors in adjacent layers have the same distance. May be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> magnesium = molecular.structures.hexagonal_close_packed((2, 2, 2), spacing=3.21, ratio=1.624)
        >>> print(len(magnesium.position), np.diag(magnesium.cell / 2).round(2))
        32 [3.21 5.56 5.21]
    """
    sites = [(0, 0, 0), (1 / 2, 1 / 2, 0), (1 / 2, 1 / 6, 1 / 2), (0, 2 / 3, 1 / 2)]
    return _crystal(sites, (1, math.sqrt(3), ratio), repeats, spacing)


def diamond(repeats: tuple[int, int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return the diamond structure of carbon and silicon, 4 nearest neighbors at tetrahedral angles.

    The unit cell is a cube of side ``4 / sqrt(3) spacing`` (the lattice constant) with eight particles.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors (the bond length), length; may be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> silicon = molecular.structures.diamond((2, 2, 2), spacing=2.352)
        >>> print(len(silicon.position), np.diag(silicon.cell / 2).round(2))
        64 [5.43 5.43 5.43]
    """
    shifted = [tuple(x + 1 / 4 for x in site) for site in FACE_CENTERED]
    return _crystal(FACE_CENTERED + shifted, (4 / math.sqrt(3),) * 3, repeats, spacing)


def body_centered_cubic(repeats: tuple[int, int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return a body-centered cubic crystal, 8 nearest neighbors; with two species, the structure of cesium chloride.

    The unit cell is a cube of side ``2 / sqrt(3) spacing`` (the lattice constant) with two particles. All corners come
    before all centers.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> iron = molecular.structures.body_centered_cubic((2, 2, 2), spacing=2.482)
        >>> print(len(iron.position), np.diag(iron.cell / 2).round(3))
        16 [2.866 2.866 2.866]
    """
    return _crystal([(0, 0, 0)], (2 / math.sqrt(3),) * 3, repeats, spacing, [(1 / 2, 1 / 2, 1 / 2)])


def rocksalt(repeats: tuple[int, int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return the structure of rock salt, 6 nearest neighbors of the other species.

    The unit cell is a cube of side ``2 spacing`` (the lattice constant) with eight particles. All particles of one
    species come before those of the other.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> salt = molecular.structures.rocksalt((2, 2, 2), spacing=2.82)
        >>> print(len(salt.position), np.diag(salt.cell / 2).round(2))
        64 [5.64 5.64 5.64]
    """
    shifted = [tuple((x + 1 / 2) % 1 for x in site) for site in FACE_CENTERED]
    return _crystal(FACE_CENTERED, (2.0,) * 3, repeats, spacing, shifted)


def fluorite(repeats: tuple[int, int, int], *, spacing: jax.Array | float = 1.0) -> Lattice:
    """Return the structure of fluorite, CaF2: 8 nearest neighbors of the first species, 4 of the second.

    The unit cell is a cube of side ``4 / sqrt(3) spacing`` (the lattice constant) with four particles of the first and
    eight of the second species. All particles of one species come before those of the other.

    Args:
        repeats: unit cells along each axis.
        spacing: distance of nearest neighbors, length; may be traced.

    Raises:
        UserError: if ``repeats`` are not three positive integers.

    Example:
        >>> fluorite = molecular.structures.fluorite((1, 1, 1), spacing=2.366)
        >>> print(len(fluorite.position), np.diag(fluorite.cell).round(2))
        12 [5.46 5.46 5.46]
    """
    corners = list(itertools.product((1 / 4, 3 / 4), repeat=3))
    return _crystal(FACE_CENTERED, (4 / math.sqrt(3),) * 3, repeats, spacing, corners)


def _crystal(
    sites: list[tuple[float, ...]],
    edges: tuple[float | jax.Array, ...],
    repeats: tuple[int, ...],
    spacing: jax.Array | float,
    others: Sequence[tuple[float, ...]] = (),
) -> Lattice:
    """Repeat a unit cell with the given sites (in units of its edges) and edges (in units of the spacing).

    Sites of ``others``, of a second species, follow in all cells after the first ones.
    """
    dimension = len(edges)
    check_shape("repeats", repeats, f"{dimension} numbers of unit cells, one per axis", (dimension,))
    for number in repeats:
        check_integer("repeats", number, 1)
    counts = [int(n) for n in repeats]
    check_particles(math.prod(counts) * (len(sites) + len(others)), f"repeats = {counts}")
    corners = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 1, dimension)
    species = [np.asarray(each).reshape(-1, dimension) for each in (sites, others)]
    fractions = np.concatenate([((corners + each) / counts).reshape(-1, dimension) for each in species])
    sides = [jnp.asarray(n * edge * spacing, dtype=float) for n, edge in zip(counts, edges, strict=True)]
    position, cell = _filled(np.asarray(fractions, sides[0].dtype), sides)
    return Lattice(position=position, cell=cell)


@compiled
def _filled(fractions: np.ndarray, sides: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the positions, given in units of the sides of a box, and its lattice vectors."""
    return jnp.asarray(fractions) * jnp.stack(sides), jnp.diag(jnp.stack(sides))
