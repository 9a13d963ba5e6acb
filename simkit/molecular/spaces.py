"""Geometry of free space and periodic cells, and particles in them: frames, frozen masks, bounds on their number."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_shape
from simkit.core.formulation import computed_once, precise_product
from simkit.core.simulation import Arrays
from simkit.core.tracing import kernel
from simkit.errors import UserError

__all__ = [
    "Space",
    "displacement",
    "displacement_without_drift",
    "free",
    "lattice_vectors",
    "of_cell",
    "periodic",
    "reduction",
    "triclinic",
    "volume_of",
]

type Components = tuple[jax.Array, ...]
type Cell = jax.Array | None

# Round-off of a fractional difference of positions up to a cell outside, in rounding units.
DOUBT = 16


class Space(NamedTuple):
    """A geometry as functions, all that pair forces need.

    Differences of positions are passed as one array per component rather than as one array with a trailing axis of
    two or three: compilers vectorize the former and not the latter.

    Attributes:
        nearest_image: differences of positions, one array per component -> the shortest equivalent differences.
        separation: as ``nearest_image``, for sums over pairs within a cut-off: differences that are not shorter than
            half the smallest width may become any others that are not.
        wrap: positions (N, d) -> the equivalent positions inside the box.
        fractional: positions, one array per component -> coordinates in units of the lattice vectors.
        volume: scalar, length^d; infinite in free space.
        widths: distances between opposite faces, (d,); infinite in free space.
        is_periodic: whether particles have images.

    Example:
        >>> box = molecular.spaces.periodic(jnp.array([4.0, 5.0]))
        >>> isinstance(box, molecular.spaces.Space), box.wrap(jnp.array([[5.0, -1.0]])).tolist()
        (True, [[1.0, 4.0]])
    """

    nearest_image: Callable[[Components], Components]
    separation: Callable[[Components], Components]
    wrap: Callable[[jax.Array], jax.Array]
    fractional: Callable[[Components], Components]
    volume: jax.Array
    widths: jax.Array
    is_periodic: bool


def of_cell(cell: Cell, dimension: int) -> Space:
    """Return the space of a cell, chosen by the shape of the cell.

    Args:
        cell: ``None`` for free space, (d,) side lengths for an orthorhombic box, infinite along axes that are not
            periodic, or (d, d) lattice vectors as rows.
        dimension: d, 2 or 3.

    Raises:
        UserError: if the cell does not fit the dimension.

    Example:
        >>> box = molecular.spaces.of_cell(jnp.array([4.0, 5.0]), 2)
        >>> float(box.volume), box.is_periodic, molecular.spaces.of_cell(None, 2).is_periodic
        (20.0, True, False)
    """
    if cell is None:
        return free(dimension)
    sides, vectors = (dimension,), (dimension, dimension)
    wanted = (
        f"{sides} side lengths, {vectors} lattice vectors as rows, or None for free space, in {dimension} dimensions"
    )
    cell = _shaped(cell, (sides, vectors), wanted)
    return periodic(cell) if cell.ndim == 1 else triclinic(cell)


def _shaped(cell: jax.Array, shapes: tuple[tuple[int, ...], ...], wanted: str) -> jax.Array:
    """Return a cell as an array, which has one of some shapes."""
    check_shape("cell", cell, wanted, *shapes)
    return jnp.asarray(cell)


def free(dimension: int) -> Space:
    """Return unbounded space, for clusters and molecules.

    Args:
        dimension: d, 2 or 3.

    Raises:
        UserError: if ``dimension`` is neither 2 nor 3.

    Example:
        >>> float(molecular.spaces.free(3).volume)
        inf
    """
    check_integer("dimension", dimension, 2, 3)
    infinite = jnp.asarray(jnp.inf, dtype=float)
    return Space(
        nearest_image=lambda difference: difference,
        separation=lambda difference: difference,
        wrap=lambda position: position,
        fractional=lambda position: position,
        volume=infinite,
        widths=jnp.broadcast_to(infinite, (dimension,)),
        is_periodic=False,
    )


def periodic(box: jax.Array) -> Space:
    """Return an orthorhombic box whose opposite faces are joined.

    A difference becomes ``dx - L round(dx / L)`` per component; positions may lie any number of boxes away. Only the
    nearest image of each pair interacts, so the cut-off must not exceed half the shortest side. An infinite side is an
    axis that is not periodic, as between two walls; the volume is then infinite.

    Args:
        box: side lengths, (2,) or (3,), some of them infinite; may be traced and differentiated.

    Raises:
        UserError: if ``box`` is not two or three lengths.

    Example:
        >>> box = molecular.spaces.periodic(jnp.array([4.0, 4.0]))
        >>> [float(each) for each in box.nearest_image((jnp.array(3.0), jnp.array(-1.0)))]
        [-1.0, -1.0]
    """
    box = _shaped(box, ((2,), (3,)), "the 2 or 3 side lengths of an orthorhombic box")
    # On an infinite side: infinity times zero images would be NaN.
    inverse, period = 1 / box, jnp.where(jnp.isinf(box), 0, box)

    def nearest_image(difference: Components) -> Components:
        return tuple(d - period[axis] * jnp.round(d * inverse[axis]) for axis, d in enumerate(difference))

    def wrap(position: jax.Array) -> jax.Array:
        wrapped = position - period * jnp.floor(position * inverse)
        # A position just below zero rounds to the far face, which is the near face of the next box.
        return jnp.where(wrapped < box, wrapped, wrapped - period)

    return Space(
        nearest_image=nearest_image,
        separation=nearest_image,
        wrap=wrap,
        fractional=lambda position: tuple(x * inverse[axis] for axis, x in enumerate(position)),
        volume=math.prod(jnp.unstack(box)[1:], start=box[0]),
        widths=box,
        is_periodic=True,
    )


def triclinic(cell: jax.Array) -> Space:
    """Return a periodic cell of any shape, such as a sheared box.

    With fractional coordinates ``s = dx C^-1`` a difference becomes ``dx - round(s) C``. That is the shortest image
    wherever the shortest image is shorter than half the smallest of the `Space.widths`, for then every fractional
    component is below one half; so the cut-off must not exceed that. A cell sheared by more than half a side has small
    widths: give the equivalent cell of `reduction`.

    Args:
        cell: lattice vectors as rows, (2, 2) or (3, 3), either handedness; may be traced and differentiated.

    Raises:
        UserError: if ``cell`` is not square of size two or three.

    Example:
        >>> sheared = molecular.spaces.triclinic(jnp.array([[2.0, 0.0], [1.5, 2.0]]))
        >>> print(f"{sheared.volume:.1f}", [f"{width:.1f}" for width in sheared.widths])
        4.0 ['1.6', '2.0']
    """
    cell = _shaped(cell, ((2, 2), (3, 3)), "2 or 3 lattice vectors as rows")
    dimension, inverse = len(cell), inverse_of(cell)

    def fractional(position: Components) -> Components:
        return tuple(_dot(position, inverse[:, a]) for a in range(dimension))

    def shifted(difference: Components, images: Components) -> Components:
        return tuple(d - sum(n * cell[a, b] for a, n in enumerate(images)) for b, d in enumerate(difference))

    def nearest_image(difference: Components) -> Components:
        # Without the barrier the compiler computes the images anew for each component, with sums contracted in
        # different ways: a half is then rounded to different sides, and the shift is no lattice vector.
        return shifted(difference, computed_once(tuple(jnp.round(s) for s in fractional(difference))))

    # Longer than any width: the first component of a difference of half a lattice vector, whose images are in doubt.
    far = jnp.sum(jnp.abs(cell))
    doubt = DOUBT * jnp.finfo(cell.dtype).eps

    def separation(difference: Components) -> Components:
        fractions = fractional(difference)
        images = tuple(jnp.round(s) for s in fractions)
        first, *others = shifted(difference, images)
        from_image = [jnp.abs(s - n) + doubt * jnp.abs(n) for s, n in zip(fractions, images, strict=True)]
        is_clear = functools.reduce(jnp.maximum, from_image) < 0.5 - doubt
        return jnp.where(is_clear, first, far), *others

    def wrap(position: jax.Array) -> jax.Array:
        inside = precise_product(position, inverse)
        inside = inside - jnp.floor(inside)
        # A coordinate just below zero rounds to one, which is the near face of the next cell.
        return precise_product(jnp.where(inside < 1, inside, 0), cell)

    return Space(
        nearest_image=nearest_image,
        separation=separation,
        wrap=wrap,
        fractional=fractional,
        volume=jnp.abs(determinant(cell)),
        # Column a of the inverse is the reciprocal vector perpendicular to the faces that bound direction a.
        widths=1 / jnp.sqrt(jnp.sum(inverse**2, axis=0)),
        is_periodic=True,
    )


def volume_of(cell: Cell, dimension: int) -> jax.Array:
    """Return the volume of a cell.

    Args:
        cell: as for `of_cell`.
        dimension: d, 2 or 3.

    Raises:
        UserError: in free space, which has none.

    Example:
        >>> float(molecular.spaces.volume_of(jnp.array([2.0, 3.0, 4.0]), 3))
        24.0
    """
    if cell is None:
        raise UserError("free space has no volume, and so no stress, elastic constants and tail; give a cell")
    return of_cell(cell, dimension).volume


def reduction(cell: np.ndarray) -> np.ndarray:
    """Return the integers M, (d, d), of determinant 1, for which the vectors ``M cell`` span the same lattice best.

    These are as short as possible (Minkowski-reduced), so widths are large; a cell whose widths are no smaller than
    theirs stays as it is: M is the identity.

    Args:
        cell: lattice vectors as rows, (2, 2) or (3, 3).

    Raises:
        UserError: if they do not span space.

    Example:
        >>> skewed = np.array([[1.0, 0.0], [3.0, 1.0]])
        >>> molecular.spaces.reduction(skewed) @ skewed
        array([[1., 0.],
               [0., 1.]])

    Reference: Minkowski, J. Reine Angew. Math. 129, 220 (1905), doi:10.1515/crll.1905.129.220.
    """
    cell = np.asarray(cell, float)
    dimension = len(cell)
    if not np.isfinite(cell).all() or not np.linalg.det(cell):
        raise UserError("the lattice vectors do not span space; give others")
    vectors, integers = cell, np.eye(dimension, dtype=int)
    changes = [np.array(n) for n in itertools.product((-1, 0, 1), repeat=dimension)]
    shortens = True
    while shortens:
        shortens = False
        for row, change in itertools.product(range(dimension), changes):
            if change[row]:
                continue
            shift = change @ vectors
            # As many times as bring the vector nearest to the perpendicular of the shift.
            times = round(float(vectors[row] @ shift / (shift @ shift or 1)))
            moved = vectors[row] - times * shift
            if moved @ moved < vectors[row] @ vectors[row] * (1 - 1e-9):
                integers[row] -= times * (change @ integers)
                vectors, shortens = integers @ cell, True
    narrowest = [1 / np.linalg.norm(np.linalg.inv(each), axis=0).max() for each in (cell, vectors)]
    return integers if narrowest[1] > narrowest[0] * (1 + 1e-9) else np.eye(dimension, dtype=int)


def displacement(space: Space, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the shortest vector from ``b`` to ``a``.

    Args:
        space: the geometry.
        a: positions, (..., d).
        b: positions, (..., d).

    Returns:
        ``a - b`` by the nearest image, (..., d).

    Example:
        >>> box = molecular.spaces.periodic(jnp.array([4.0, 4.0]))
        >>> molecular.spaces.displacement(box, jnp.array([3.5, 1.0]), jnp.array([0.5, 1.0])).tolist()
        [-1.0, 0.0]
    """
    difference = a - b
    components = tuple(difference[..., axis] for axis in range(difference.shape[-1]))
    return jnp.stack(space.nearest_image(components), axis=-1)


def displacement_without_drift(space: Space, position: jax.Array, home: jax.Array) -> jax.Array:
    """Return the displacement of each particle from its home less the mean displacement, a rigid translation.

    Args:
        space: the geometry; `free` where positions are never wrapped.
        position: (N, d).
        home: reference positions, (N, d).

    Returns:
        (N, d).

    Example:
        >>> home = jnp.array([[0.0, 0.0], [1.0, 0.0]])
        >>> moved = home + jnp.array([[3.0, 0.0], [5.0, 0.0]])
        >>> molecular.spaces.displacement_without_drift(molecular.spaces.free(2), moved, home).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """
    away = displacement(space, position, home)
    return away - away.mean(axis=0)


def lattice_vectors(cell: jax.Array) -> jax.Array:
    """Return a cell as lattice vectors, (d, d).

    Args:
        cell: (d,) side lengths or (d, d) lattice vectors as rows.

    Example:
        >>> molecular.spaces.lattice_vectors(jnp.array([2.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    return jnp.diag(cell) if cell.ndim == 1 else cell


def deformation_between(old: jax.Array, new: jax.Array) -> jax.Array:
    """Return ``F - 1`` of the deformation F that turns one cell into another, (d, d).

    Args:
        old: (d,) side lengths, infinite along axes that are not periodic, or (d, d) lattice vectors as rows.
        new: as ``old``.
    """
    if old.ndim == 1:
        is_endless = jnp.isinf(old)
        # The derivative of a branch that is not taken must be finite, too.
        old, new = jnp.where(is_endless, 1, old), jnp.where(is_endless, 1, new)
        return jnp.diag((new - old) / old)
    return precise_product(inverse_of(old), new - old)


def determinant(matrix: jax.Array) -> jax.Array:
    """Return the determinant of a matrix of two or three rows by cofactors.

    Args:
        matrix: (2, 2) or (3, 3).
    """
    return jnp.sum(matrix[0] * _cofactors(matrix)[0])


def inverse_of(matrix: jax.Array) -> jax.Array:
    """Return the inverse of a matrix of two or three rows by cofactors: no library call, so it exports anywhere.

    Args:
        matrix: (2, 2) or (3, 3).
    """
    cofactors = _cofactors(matrix)
    return cofactors.T / jnp.sum(matrix[0] * cofactors[0])


@kernel
def _cofactors(matrix: jax.Array) -> jax.Array:
    if len(matrix) == 2:
        (a, b), (c, d) = matrix
        return jnp.stack([jnp.stack([d, -c]), jnp.stack([-b, a])])
    return jnp.stack([jnp.cross(matrix[(row + 1) % 3], matrix[(row + 2) % 3]) for row in range(3)])


def _dot(components: Components, weights: jax.Array) -> jax.Array:
    """Return the sum of the components, each times its weight, written out: compilers do not vectorize short axes."""
    total = components[0] * weights[0]
    for index, component in enumerate(components[1:], start=1):
        total = total + component * weights[index]
    return total


def repeated(position: jax.Array, cell: Cell, repeats: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Return the positions of particles and of their images, ordered by cell, (cells N, d), and the cell of the block.

    Args:
        position: (N, d).
        cell: sides (d,), infinite where nothing repeats, or lattice vectors as rows (d, d).
        repeats: cells along each axis.
    """
    assert cell is not None  # nothing repeats in free space
    corners = np.stack(np.meshgrid(*map(np.arange, repeats), indexing="ij"), axis=-1).reshape(-1, len(repeats))
    # Along a side without images there is one cell, whose infinite length times zero would be NaN.
    finite = jnp.where(jnp.isinf(cell), 0, cell)
    shifts = precise_product(jnp.asarray(corners, cell.dtype), lattice_vectors(finite))
    counts = jnp.asarray(repeats, cell.dtype)
    block = cell * (counts if cell.ndim == 1 else counts[:, None])
    return (shifts[:, None] + position).reshape(-1, position.shape[1]), block


def in_cell(position: jax.Array, cell: Cell) -> Arrays:
    """Return the stored positions: wrapped into the cell if there is one, with its lattice vectors and their lengths.

    Args:
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
    """
    if cell is None:
        return {"position": position}
    vectors = lattice_vectors(cell)
    box = jnp.sqrt(jnp.sum(vectors**2, axis=1))
    return {"position": of_cell(cell, position.shape[1]).wrap(position), "cell": vectors, "box": box}


def dimensions_of(*per_particle: str, has_cell: bool, **others: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the dimension names of stored arrays.

    Args:
        *per_particle: names of arrays (N, d) in addition to ``position``.
        has_cell: whether the particles have a cell.
        **others: dimension names of other arrays.
    """
    names = {name: ("particle", "axis") for name in ("position", *per_particle)} | others
    return names | {"cell": ("lattice_vector", "axis"), "box": ("lattice_vector",)} if has_cell else names


def checked_positions(position: jax.Array) -> jax.Array:
    """Return starting positions, (N, d).

    Raises:
        UserError: if they are not real numbers of this shape.
    """
    shape, kind = jnp.shape(position), jnp.result_type(position)
    if len(shape) != 2 or shape[1] not in (2, 3) or not jnp.issubdtype(kind, jnp.floating):
        raise UserError(f"the start returns {kind} of shape {shape}; return real numbers of shape (N, 2) or (N, 3)")
    return position


def frozen_mask(frozen: Sequence[bool] | np.ndarray | None) -> np.ndarray | None:
    """Return the mask of frozen particles, (N,) booleans, or ``None`` if none is frozen.

    Args:
        frozen: one boolean for each particle, or ``None``.

    Raises:
        UserError: if it is not a vector of booleans.
    """
    if frozen is None:
        return None
    mask = np.asarray(frozen)
    if mask.ndim != 1 or mask.dtype != bool:
        raise UserError(
            f"frozen has shape {mask.shape} and type {mask.dtype}; give true or false for each particle, shape (N,)"
        )
    return mask if mask.any() else None


def check_frozen(mask: np.ndarray, count: int) -> None:
    """Refuse a mask of another length than the number of particles, or with all particles frozen.

    Args:
        mask: (N,) booleans.
        count: number of particles.

    Raises:
        UserError: if the length differs, or all are frozen.
    """
    if len(mask) != count or mask.all():
        named = f"{mask.sum()} of {len(mask)} particles, and there are {count}"
        raise UserError(f"frozen names {named}; give true or false for each, and leave at least one free")


# The tables of a neighbor list hold up to a hundred numbers per particle, counted by 32-bit integers.
MAX_PARTICLES = 2**24
# A table of all their pairs takes a gigabyte.
MAX_PARTICLES_IN_PAIRS = 2**14


def check_particles(count: int, given: str, most: int = MAX_PARTICLES) -> None:
    """Refuse more particles than can be simulated, before arrays are allocated.

    Args:
        count: number of particles.
        given: the request for the message, such as ``"particles = 64"``.
        most: upper bound.

    Raises:
        UserError: if there are more.
    """
    if count > most:
        raise UserError(f"{given} makes {count:.3g} particles; choose fewer, at most {most}")


# Their integers take 100 MB; each costs a pass over all particles, or a dynamical matrix.
MAX_WAVE_VECTORS = 2**22


def check_wave_vectors(count: float, given: str, remedy: str, most: int = MAX_WAVE_VECTORS) -> None:
    """Refuse more wave vectors than can be listed, before arrays are allocated.

    Args:
        count: number of wave vectors.
        given: the request for the message, such as ``"largest = 300"``.
        remedy: what to change.
        most: upper bound.

    Raises:
        UserError: if there are more.
    """
    if count > most:
        raise UserError(f"{given} makes {count:.3g} wave vectors, more than {most}; {remedy}")


def wave_numbers(vectors: np.ndarray, largest: float, given: str, remedy: str) -> np.ndarray:
    """Return the integers n of a block that holds all wave vectors ``k = 2 pi n / cell`` up to a length, (M, d).

    The second half has the opposite vectors of the first, zero in its middle.

    Args:
        vectors: lattice vectors as rows, length, (d, d).
        largest: length of the longest, 1 / length.
        given: as for `check_wave_vectors`.
        remedy: likewise; braces are replaced by a length that fits.

    Raises:
        UserError: if there are too many.
    """
    # n_a = k . a_a / 2 pi is at most this.
    most = np.floor(largest * np.linalg.norm(vectors, axis=1) / (2 * np.pi) * (1 + 1e-9))
    count = math.prod((2 * most + 1).tolist())
    fits = 0.9 * largest * (MAX_WAVE_VECTORS / count) ** (1 / max(1, np.count_nonzero(most)))
    check_wave_vectors(count, given, remedy.format(fits))
    axes = [np.arange(-each, each + 1) for each in most.astype(int)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
