"""Smooth particle-mesh Ewald: the sum over wave vectors of charges by interpolation on a mesh.

Charges are spread over the points of a mesh by B-splines, and a Fourier transform replaces the sum over particles for
each wave vector. `mesh_operation` spreads and interpolates; both are transposes of each other, and their derivatives by
positions are the same operations with derivatives of the splines. So derivatives add in a fixed order, too.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from simkit.core.arguments import check_integer, check_shape
from simkit.core.formulation import precise_product
from simkit.core.parts import part
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params
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

# Points of a mesh, whose arrays take gigabytes.
MOST_POINTS = 2**27

type Orders = tuple[int, int, int]

ORDER = whole("order of the splines, whose degree is one less", 6, low=4, high=16)


@part(**{**PART, "keys": {**PART["keys"], "order": ORDER}})
def many_body(tolerance: float = 1e-5, order: int = 6) -> ManyBody:
    """Return the sum as scenario files name it, of the particles' ``charge``; see `particle_mesh_ewald`.

    Where no cut-off is given, it is four mean distances, at most half the narrowest width of the cell. Mesh and images
    suffice for cells up to a tenth longer or shorter than at the default parameters; beyond, energies are NaN.
    """
    chosen = split(tolerance)

    def summed(cell: np.ndarray, cutoff: float) -> tuple[Reciprocal, np.ndarray]:
        mesh = mesh_for(ROOM * cell, cutoff, tolerance, order)
        return _mesh_sum(mesh, order), (np.array(mesh) - 1) // 2

    def usual_cutoff(space: Space, count: int) -> jax.Array:
        return jnp.minimum(0.45 * space.widths.min(), 4 * (space.volume / count) ** (1 / 3))

    return of_tolerance(chosen, summed, usual_cutoff)


@arguments(order=ORDER)
def particle_mesh_ewald(
    mesh: tuple[int, int, int],
    *,
    order: int = 6,
    charges: Callable[[Params], Charges] = of_params,
    excluded: np.ndarray | None = None,
    method: Method = "auto",
    skin: float = SKIN,
    capacity: int | None = None,
) -> Interaction:
    """Return the Coulomb interaction of charges in a periodic cell by smooth particle-mesh Ewald.

    The energy is that of `ewald`, whose sum over wave vectors is interpolated: with ``F`` the Fourier transform of the
    charges spread by splines of order p, and b the Fourier coefficients that the splines lack,

        E_k = 2 pi k / V sum_n exp(-k^2 / 4 alpha^2) / k^2 |b_1 b_2 b_3 F(n)|^2

    The cost is proportional to N p^3 and M log M for M mesh points. The error falls with the p-th power of alpha times
    the distance of mesh points. Momentum is conserved up to this error. `mesh_for` gives a mesh for a tolerance.

    Args:
        mesh: points along each lattice vector.
        order: p. Good values: 4 to 6 for errors of 1e-4, 8 to 12 for much smaller ones.
        charges: ``params -> Charges``, as for `ewald`.
        excluded: as for `ewald`.
        method: as for `ewald`.
        skin: as for `ewald`.
        capacity: as for `ewald`.

    Raises:
        UserError: if the mesh is not three numbers, none below the order; as for `ewald`.

    Example:
        >>> crystal = molecular.structures.rocksalt((1, 1, 1), spacing=1.0)
        >>> charge = jnp.where(jnp.arange(8) < 4, 1.0, -1.0)
        >>> params = {"charge": charge, "cutoff": 1.0, "damping": 3.0}
        >>> coulomb = molecular.electrostatics.particle_mesh_ewald((24, 24, 24))
        >>> x, cell = crystal.position + 0.3, crystal.cell
        >>> energy = coulomb.energy(x, cell, params, coulomb.prepare(x, cell, params))
        >>> print(f"{-energy / 4:.3f}: the constant of Madelung")
        1.748: the constant of Madelung

    Reference: Essmann, Perera, Berkowitz, Darden, Lee, Pedersen, J. Chem. Phys. 103, 8577 (1995),
    doi:10.1063/1.470117.
    """
    points = tuple(mesh)
    check_shape("mesh", points, "three numbers of points", (3,))
    for number in points:
        check_integer("mesh", number, order)
    options: PairOptions = {"method": method, "skin": skin, "capacity": capacity}
    return charge_interaction(_mesh_sum(points, order), charges, excluded, options)


# Lengths of fast Fourier transforms have these factors only.
FACTORS = (2, 3, 5, 7)


def mesh_for(cell: np.ndarray | jax.Array, cutoff: float, tolerance: float, order: int = 6) -> tuple[int, int, int]:
    """Return the points of a mesh along each lattice vector for a tolerance, with the damping of `split`.

    Args:
        cell: lattice vectors as rows, (3, 3), or sides, (3,).
        cutoff: of the sum over pairs, length.
        tolerance: as for `split`.
        order: of the splines.

    Raises:
        UserError: if there are too many points.

    Example:
        >>> molecular.electrostatics.mesh_for(np.full(3, 30.0), 9.0, 1e-5)
        (54, 54, 54)
    """
    vectors, chosen = np.asarray(cell, float), split(tolerance)
    sides = vectors if vectors.ndim == 1 else np.linalg.norm(vectors, axis=1)
    spacing = SPACING * tolerance ** (1 / order) * cutoff / chosen.damping
    waves = sides * chosen.largest / cutoff / (2 * math.pi)
    least = np.maximum(np.maximum(sides / spacing, 2 * waves + 2), order)
    spaces.check_wave_vectors(math.prod(least.tolist()), f"a cutoff of {cutoff:g} of charges", SHORTER, MOST_POINTS)
    first, second, third = (_smooth(math.ceil(each * (1 - 1e-9))) for each in least)
    return first, second, third


# Distance of mesh points times alpha, over the p-th root of the tolerance: measured, see tests.
SPACING = 1.5
# Numbers of a scan that sums the particles of each cell: 64 MiB in float32, of which it holds some at a time.
LARGEST_SCAN = 2**24


def _smooth(number: int) -> int:
    """Return the least number from this on whose factors are small."""

    def rest(n: int) -> int:
        for factor in FACTORS:
            while n % factor == 0:
                n //= factor
        return n

    while rest(number) > 1:
        number += 1
    return number


def _mesh_sum(mesh: tuple[int, ...], order: int) -> Reciprocal:
    """Return the sum over wave vectors on a mesh."""
    # Those along the last axis that the transform of real numbers keeps: the others are their conjugates.
    numbers = [np.fft.fftfreq(n, 1 / n) for n in mesh]
    numbers[2] = np.arange(mesh[2] // 2 + 1.0)
    grid = np.stack(np.meshgrid(*numbers, indexing="ij"), axis=-1)
    times = np.where(numbers[2] > 0, 2.0, 1.0)
    factors = [_lack_of_splines(n, order)[np.abs(k).astype(int)] for n, k in zip(mesh, numbers, strict=True)]
    weight = factors[0][:, None, None] * factors[1][:, None] * (factors[2] * times)
    # The wave of half the number of points has no opposite, and zero no energy.
    for axis, n in enumerate(mesh):
        weight = np.where(2 * np.abs(grid[..., axis]) == n, 0, weight)
    weight[0, 0, 0] = 0

    def energy(fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array) -> jax.Array:
        kind = fraction.dtype
        spread = mesh_operation(fraction * jnp.asarray(mesh, kind), charge, mesh, order)
        waves = jnp.fft.rfftn(spread)
        vectors = 2 * math.pi * precise_product(jnp.asarray(grid, kind), spaces.inverse_of(cell).T)
        is_used = jnp.asarray(weight > 0)
        squared = jnp.where(is_used, jnp.sum(vectors**2, axis=-1), 1)
        factor = jnp.where(is_used, jnp.asarray(weight, kind) * jnp.exp(-squared / (4 * damping**2)) / squared, 0)
        power = jnp.real(waves) ** 2 + jnp.imag(waves) ** 2
        return 2 * math.pi / jnp.abs(spaces.determinant(cell)) * jnp.sum(factor * power)

    return energy


def _lack_of_splines(points: int, order: int) -> np.ndarray:
    """Return ``|b(n)|^2`` for n from 0 to half the points, by which splines on a mesh lack short waves."""
    at_points = np.array([float(x) for x in _splines(np.zeros(()), order, 0)])
    numbers = np.arange(points // 2 + 1)
    transform = np.exp(2j * np.pi * np.outer(numbers, np.arange(order)) / points) @ at_points
    return 1 / np.maximum(np.abs(transform) ** 2, 1e-10)


def _splines(w: Any, order: int, derivative: int) -> list[Any]:
    """Return a derivative of the B-spline M_p at ``w + j`` for j from 0 to p - 1, by recursion.

    ``M_p(x) = (x M_(p-1)(x) + (p - x) M_(p-1)(x - 1)) / (p - 1)`` on 0 < x < p, and ``M_p'(x)`` is
    ``M_(p-1)(x) - M_(p-1)(x - 1)``.

    Args:
        w: fraction of a mesh distance, in [0, 1).
        order: p.
        derivative: how many times; zero from p on.
    """
    if derivative >= order:
        return [0 * w] * order
    zero, values = 0 * w, [1 + 0 * w]
    for n in range(2, order - derivative + 1):
        below = [zero, *values, zero]
        values = [((w + j) * below[j + 1] + (n - w - j) * below[j]) / (n - 1) for j in range(n)]
    for _ in range(derivative):
        below = [zero, *values, zero]
        values = [below[j + 1] - below[j] for j in range(len(below) - 1)]
    return values


def mesh_operation(
    place: jax.Array,
    values: jax.Array,
    mesh: tuple[int, ...],
    order: int,
    derivatives: Orders = (0, 0, 0),
    *,
    interpolates: bool = False,
) -> jax.Array:
    """Return numbers of particles spread over a mesh by B-splines; or those of the mesh interpolated at particles.

    Point k receives ``sum_i v_i M_p(u_i1 - k_1) M_p(u_i2 - k_2) M_p(u_i3 - k_3)``, periodically.

    Args:
        place: u, positions in units of the distances of mesh points, (N, 3).
        values: of the particles, (N,), or of the mesh where it interpolates.
        mesh: points along each axis.
        order: p.
        derivatives: of the splines by u along each axis.
        interpolates: whether the values are those of the mesh.

    Returns:
        Of the mesh, or (N,) where it interpolates.
    """
    return _MESH.bind(place, values, mesh=mesh, order=order, derivatives=derivatives, gathers=interpolates, depth=0)


def _spread(place: jax.Array, values: jax.Array, mesh: tuple[int, ...], order: int, derivatives: Orders) -> jax.Array:
    """Spread on a CPU, which adds one particle after the other."""
    cell, weights = _weights(place, mesh, order, derivatives)
    total = jnp.zeros(math.prod(mesh), values.dtype)
    for j in range(order):
        index, weight = _row(cell, weights, mesh, j)
        total = total.at[index.ravel()].add((weight * values).ravel(), mode="promise_in_bounds")
    return total.reshape(mesh)


def _spread_sorted(
    place: jax.Array, values: jax.Array, mesh: tuple[int, ...], order: int, derivatives: Orders
) -> jax.Array:
    """Spread where many threads would write to one point: particles are sorted by cell, and mesh points gather.

    A segmented scan adds the particles of each cell in a fixed order; each point gathers the sums of p^3 cells.
    """
    cell, weights = _weights(place, mesh, order, derivatives)
    flat = (cell[0] * mesh[1] + cell[1]) * mesh[2] + cell[2]
    order_of = jnp.argsort(flat, stable=True)
    flat, values = flat[order_of], values[order_of]
    weights = [[each[order_of] for each in axis] for axis in weights]
    edge = jnp.ones(1, bool)
    is_first = jnp.concatenate([edge, flat[1:] != flat[:-1]])
    is_last = jnp.concatenate([flat[1:] != flat[:-1], edge])
    count, points = len(flat), math.prod(mesh)
    # Where a cell finds its sums; an empty one finds zeros behind all.
    row = jnp.full(points + 1, count, jnp.int32)
    places = jnp.where(is_last, flat, points + 1)
    row = row.at[places].set(jnp.arange(count, dtype=jnp.int32), mode="drop", unique_indices=False)[:points]
    row = row.reshape(mesh)

    def joined(one: tuple, other: tuple) -> tuple:
        return jnp.where(other[1], other[0], one[0] + other[0]), one[1] | other[1]

    total = jnp.zeros(mesh, values.dtype)
    # A scan is some forty kernels however wide it is, so that all p^2 rows share one as far as memory allows.
    rows = list(itertools.product(range(order), repeat=2))
    for some in itertools.batched(rows, max(1, LARGEST_SCAN // (count * order))):
        parts = [values * weights[0][j] * weights[1][k] * each for j, k in some for each in weights[2]]
        sums, _ = jax.lax.associative_scan(joined, (jnp.stack(parts, axis=1), is_first[:, None]))
        sums = jnp.concatenate([sums, jnp.zeros_like(sums[:1])])
        for n, (j, k) in enumerate(some):
            # Point k receives from cell k + j.
            shifted = jnp.roll(row, (-j, -k), axis=(0, 1))
            for m in range(order):
                column = sums[:, n * order + m]
                total = total + column.at[jnp.roll(shifted, -m, axis=2)].get(mode="promise_in_bounds")
    return total


def _interpolated(
    place: jax.Array, values: jax.Array, mesh: tuple[int, ...], order: int, derivatives: Orders
) -> jax.Array:
    cell, weights = _weights(place, mesh, order, derivatives)
    total, flat = jnp.zeros(len(place), values.dtype), values.ravel()
    for j in range(order):
        index, weight = _row(cell, weights, mesh, j)
        total = total + jnp.sum(weight * flat.at[index].get(mode="promise_in_bounds"), axis=(0, 1))
    return total


def _weights(
    place: jax.Array, mesh: tuple[int, ...], order: int, derivatives: Orders
) -> tuple[list[jax.Array], list[list[jax.Array]]]:
    """Return the mesh cell of each particle, int32, and the weights of the points below it, along each axis."""
    cells, weights = [], []
    for axis, points in enumerate(mesh):
        floor = jnp.floor(place[:, axis])
        cells.append(jnp.mod(floor.astype(jnp.int32), points))
        weights.append(_splines(place[:, axis] - floor, order, derivatives[axis]))
    return cells, weights


def _row(
    cell: list[jax.Array], weights: list[list[jax.Array]], mesh: tuple[int, ...], j: int
) -> tuple[jax.Array, jax.Array]:
    """Return points and weights of the particles in the j-th layer below each, (p, p, N)."""
    order = len(weights[0])
    second, third = (jnp.stack([jnp.mod(cell[axis] - k, mesh[axis]) for k in range(order)]) for axis in (1, 2))
    first = jnp.mod(cell[0] - j, mesh[0])
    index = (first * mesh[1] + second[:, None]) * mesh[2] + third
    return index, weights[0][j] * jnp.stack(weights[1])[:, None] * jnp.stack(weights[2])


def _mesh_primitive() -> Primitive:
    """Return the primitive of `mesh_operation`, whose derivatives and transposes are the same operation.

    Its parameters are those of the function; ``depth`` is the number of leading axes of members.
    """

    def formulation(spread: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        def evaluate(place: jax.Array, values: jax.Array, *, gathers: bool, depth: int, **options: Any) -> jax.Array:
            def one(place: jax.Array, values: jax.Array) -> jax.Array:
                return (_interpolated if gathers else spread)(place, values, **options)

            for _ in range(depth):
                one = jax.vmap(one)
            return one(place, values)

        return evaluate

    def shape(place: Any, values: Any, *, mesh: tuple[int, ...], gathers: bool, **_: Any) -> ShapedArray:
        return ShapedArray(place.shape[:-1] if gathers else (*place.shape[:-2], *mesh), values.dtype)

    def differentiate(primals: Any, tangents: Any, **options: Any) -> Any:
        (place, values), (moves, changes) = primals, tangents
        terms = [] if isinstance(changes, ad.Zero) else [primitive.bind(place, changes, **options)]
        if not isinstance(moves, ad.Zero):
            for axis in range(3):
                orders = tuple(n + (a == axis) for a, n in enumerate(options["derivatives"]))
                steeper, move = options | {"derivatives": orders}, moves[..., axis]
                if options["gathers"]:
                    terms.append(primitive.bind(place, values, **steeper) * move)
                else:
                    terms.append(primitive.bind(place, values * move, **steeper))
        result = primitive.bind(place, values, **options)
        slope = sum(terms[1:], terms[0]) if terms else ad.Zero(jax.typeof(result).to_tangent_aval())
        return result, slope

    def transpose(cotangent: Any, place: Any, values: Any, *, gathers: bool, **options: Any) -> Any:
        del values
        pulled = ad.instantiate_zeros(cotangent)
        return None, primitive.bind(place, pulled, gathers=not gathers, **options)

    def batch(arrays: Any, axes: Any, *, depth: int, **options: Any) -> Any:
        size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)

        def leading(array: jax.Array, axis: int | None) -> jax.Array:
            return jnp.broadcast_to(array, (size, *array.shape)) if axis is None else jnp.moveaxis(array, axis, 0)

        place, values = (leading(array, axis) for array, axis in zip(arrays, axes, strict=True))
        return primitive.bind(place, values, depth=depth + 1, **options), 0

    on_cpu, elsewhere = formulation(_spread), formulation(_spread_sorted)
    primitive = Primitive("spread_over_mesh")
    primitive.def_impl(lambda *arrays, **options: jax.jit(lambda *a: primitive.bind(*a, **options))(*arrays))
    primitive.def_abstract_eval(shape)
    ad.primitive_jvps[primitive] = differentiate
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, mlir.lower_fun(elsewhere, multiple_results=False))
    mlir.register_lowering(primitive, mlir.lower_fun(on_cpu, multiple_results=False), platform="cpu")
    return primitive


_MESH = _mesh_primitive()
