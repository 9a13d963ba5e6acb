"""The pressure equation, solved directly; in a channel with a symmetric grid as two halves."""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once
from simkit.flow.grid import Axis, Grid
from simkit.flow.operators.differences import divergence, gradient, joined
from simkit.flow.solvers.modes import BatchedModes, Periodic, SecondDifference, Transform, transpose, widened
from simkit.flow.solvers.tridiagonal import eliminate, matrix_of_slopes, substitute


def deferred(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function that ``make()`` returns, made when it is first called.

    The tables of a fine grid take seconds to compute; checks of stability and memory come first and may raise.

    Args:
        make: computes tables with NumPy only, so that tables made while one program is traced can be used by others.
    """
    made = functools.cache(make)
    return lambda *arguments: made()(*arguments)


def has_halves(grid: Grid) -> bool:
    """Return whether a grid has one bounded axis, with an even number of mirror-symmetric cells."""
    bounded = [axis for axis in grid.axes if not axis.periodic]
    if len(bounded) != 1 or bounded[0].cells % 2:
        return False
    widths = bounded[0].widths
    return bool(np.abs(widths - widths[::-1]).max() <= 1e-14 * bounded[0].length)


def solver_of_halves(grid: Grid, matrices: Sequence[SecondDifference]) -> Callable[[jax.Array], jax.Array]:
    """Return the solver of `simkit.flow.solvers.pressure.pressure_solver` for a grid of which `has_halves` is true.

    Args:
        grid: the grid.
        matrices: the second difference along each axis.
    """
    along = next(i for i, axis in enumerate(grid.axes) if not axis.periodic)
    across = [i for i in range(grid.dimension) if i != along]
    axis, lengths = grid.axes[along], tuple(grid.cells[i] for i in across)
    eigenvalues = functools.reduce(np.add.outer, [m.eigenvalues for m in matrices if isinstance(m, Periodic)])
    # The mode that is constant along the walls; zero up to rounding.
    eigenvalues.flat[0] = 0
    half = axis.cells // 2
    widths, last = axis.widths[:half], tuple(range(1, grid.dimension))
    fraction, inverse, even, odd = _coefficients(axis, eigenvalues)

    def solve(source: jax.Array) -> jax.Array:
        lower, upper = jnp.split(source, 2, along)
        field = transpose(jax.lax.complex(lower, jnp.flip(upper, along)), [along, *across])
        amplitudes = jnp.fft.fftn(field, axes=last)
        w, f, i, e, o = (jnp.asarray(constant, source.dtype) for constant in (-widths, fraction, inverse, even, odd))

        def meet(flux: jax.Array) -> jax.Array:
            flux = flux.reshape(lengths)
            mirrored = 1j * jnp.conj(_opposite(flux))
            return (e * (flux + mirrored) + o * (flux - mirrored)).ravel()

        mean = (1 + 1j) * _mean(amplitudes, widths / axis.length)
        pressure = substitute(amplitudes, w, f, i, mean, meet)
        # Subtracted here, where no additional pass over the array is needed.
        mean = _mean(pressure, widths / axis.length) / eigenvalues.size
        return _apart(jnp.fft.ifftn(pressure, axes=last), mean, along)

    return solve


def _coefficients(axis: Axis, eigenvalues: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the coefficients of the elimination up to the middle, and the weights of sum and difference there."""
    half = axis.cells // 2
    coupling = 1 / axis.distances[: half - 1]
    excess = np.multiply.outer(axis.widths[:half], eigenvalues)
    fraction, inverse = eliminate(excess, coupling)
    # Remaining diagonal of the last row of each half, 1/inverse, and its coupling to the other half.
    singular = inverse[-1] == 0
    total = np.where(singular, 0, 1 / np.where(singular, 1, inverse[-1]))
    even, odd = 0.5 * inverse[-1], 0.5 / (total + 2 / axis.distances[half - 1])
    # The last row of each half is solved together with that of the other.
    fraction[-1] = inverse[-1] = 0
    return fraction, inverse, even, odd


def _opposite(f: jax.Array) -> jax.Array:
    """Return the amplitudes of the opposite wave vectors."""
    for axis in range(f.ndim):
        f = jnp.roll(jnp.flip(f, axis), 1, axis)
    return f


def _mean(amplitudes: jax.Array, shares: np.ndarray) -> jax.Array:
    """Return the mean over both halves of the first mode."""
    first = amplitudes.reshape(len(shares), -1)[:, 0]
    return jnp.sum(jnp.asarray(shares, first.real.dtype) * (first.real + first.imag))


def _apart(field: jax.Array, mean: jax.Array, along: int) -> jax.Array:
    """Return the values on the grid less their mean, from halves whose rows come first."""
    if along == field.ndim - 1:
        # Both halves are read from one array, since a transpose of each would cost more passes.
        half, *lengths = field.shape
        table = widened(field.reshape(half, -1))
        count = field.size // half
        halves = [table.real.T[:count] - mean, jnp.flip(table.imag, 0).T[:count] - mean]
        return joined(halves, axis=1).reshape(*lengths, 2 * half)
    # One long loop is faster than nested loops.
    table = field.reshape(len(field), -1)
    rows = jnp.concatenate([table.real - mean, jnp.flip(table.imag, 0) - mean])
    moved = jnp.moveaxis(computed_once(rows).reshape(-1, *field.shape[1:]), 0, along)
    # Flattened, the array is materialized in row-major order; otherwise the compiler would transpose it at each use.
    return computed_once(moved.reshape(-1)).reshape(moved.shape)


type Method = Literal["elimination", "modes"]
METHODS: tuple[Method, ...] = ("elimination", "modes")
type OpenSides = Collection[tuple[int, int]]


def pressure_solver(
    grid: Grid, method: Method | None = None, open_sides: OpenSides = ()
) -> Callable[[jax.Array], jax.Array]:
    """Return the direct solver of the pressure equation, ``solve(source) -> p``, both at the cell centers.

        div(grad(p)) = source

    The gradient is taken between neighboring centers, and is zero on the boundary faces of every bounded axis. The
    volume mean of ``p`` is zero, and the volume mean of ``source``, for which there is no solution, is ignored. If
    there are open sides, the pressure is zero on them, the solution is unique, and the whole source is used.

    Args:
        grid: the grid.
        method: ``"modes"`` transforms along every axis and divides by the eigenvalues; ``"elimination"`` solves
            tridiagonal systems along the bounded axis of the most cells, for every mode of the other axes, and for both
            halves at once if `has_halves`. None takes the faster, see `fastest_solver`; a grid without bounded axes
            has modes only.
        open_sides: (axis, 0 or 1) of the sides on which the pressure is given, see
            `simkit.flow.operators.differences.gradient`.
    """
    where = tuple(open_sides)
    return _symmetric(fastest_solver(lambda chosen: _solver(grid, chosen, where), method), grid, where)


def _solver(grid: Grid, method: Method, open_sides: OpenSides) -> Callable[[jax.Array], jax.Array]:
    bounded = [i for i, axis in enumerate(grid.axes) if not axis.periodic]
    ends = [((i, 0) in open_sides, (i, 1) in open_sides) for i in range(grid.dimension)]
    matrices = [second_difference(axis, pair) for axis, pair in zip(grid.axes, ends, strict=True)]
    if method == "modes" or not bounded:
        return _by_modes(BatchedModes([matrices], is_singular=not open_sides))
    if has_halves(grid) and not open_sides:
        return solver_of_halves(grid, matrices)
    along = max(bounded, key=lambda i: grid.cells[i])
    others = Transform([None if i == along else matrix for i, matrix in enumerate(matrices)], first=along)
    if open_sides:
        return _by_elimination_to_sides(others, grid.axes[along], ends[along])
    return _by_elimination(others, grid.axes[along])


def _symmetric(
    solve: Callable[[jax.Array], jax.Array], grid: Grid, open_sides: OpenSides
) -> Callable[[jax.Array], jax.Array]:
    """Return the solver with its transpose defined by itself: weighted by volumes the operator is symmetric."""

    def transpose(_: object, pull: jax.Array) -> jax.Array:
        widths = [grid.along(axis.widths / axis.length, i) for i, axis in enumerate(grid.axes)]
        volumes = math.prod(jnp.asarray(width, pull.dtype) for width in widths)
        return volumes * solve(pull / volumes)

    def laplacian(pressure: jax.Array) -> jax.Array:
        return divergence(gradient(pressure, grid, open_sides), grid)

    return lambda source: jax.lax.custom_linear_solve(laplacian, source, lambda _, b: solve(b), transpose)


def fastest_solver(make: Callable[[Method], Callable[..., Any]], method: Method | None) -> Callable[..., Any]:
    """Return a solver that takes the faster method: elimination by XLA on a CPU, and modes elsewhere.

    An accelerator would run the two recurrences as hundreds of small kernels in sequence. Milliseconds per solve in
    float32 on two cores, as `tests/benchmarks/bench_pressure.py` measures them:

    ====================  ===========  =====
    cells                 elimination  modes
    ====================  ===========  =====
    256 x 128, channel           0.11   0.27
    512 x 256, channel           0.58   1.13
    64 x 512, channel            0.13   0.69
    128 x 128, cavity            0.11   0.13
    64 x 64 x 32, channel        0.54   0.78
    64 x 48 x 48, duct           1.52   1.33
    ====================  ===========  =====

    Args:
        make: from a method to its solver, see `deferred`.
        method: method to take instead of the fastest; or None.
    """
    solvers = {name: deferred(functools.partial(make, name)) for name in METHODS}
    if method is not None:
        return solvers[method]
    return lambda *arguments: by_device(*arguments, cpu=solvers["elimination"], accelerator=solvers["modes"])


def _by_modes(modes: BatchedModes) -> Callable[[jax.Array], jax.Array]:
    def inverse(eigenvalues: Any) -> Any:
        # A constant, of eigenvalue zero, is contained in neither source nor pressure.
        where = np.where if isinstance(eigenvalues, np.ndarray) else jnp.where
        is_zero = eigenvalues == 0
        return where(is_zero, 0, -1 / where(is_zero, 1, eigenvalues))

    return lambda source: modes.filtered([source], inverse)[0]


def _by_elimination(transform: Transform, axis: Axis) -> Callable[[jax.Array], jax.Array]:
    eigenvalues = transform.eigenvalues.copy()
    # Zero up to rounding: the system of the mode that is constant along the other axes is singular.
    eigenvalues.flat[0] = 0
    column = [-1] + [1] * (eigenvalues.ndim - 1)
    fraction, inverse = eliminate(axis.widths.reshape(column) * eigenvalues, 1 / axis.distances)

    def mean(amplitudes: jax.Array) -> jax.Array:
        share = jnp.asarray(axis.widths / axis.length, amplitudes.real.dtype)
        return jnp.sum(share * amplitudes.reshape(axis.cells, -1)[:, 0])

    def solve(source: jax.Array) -> jax.Array:
        amplitudes = transform.to_modes(source)
        w, e, i = (jnp.asarray(constant, source.dtype) for constant in (-axis.widths, fraction, inverse))
        pressure = substitute(amplitudes, w, e, i, mean(amplitudes))
        # Means are subtracted where no additional pass over the array is needed.
        return transform.from_modes(pressure) - mean(pressure).real / transform.constant

    return solve


def _by_elimination_to_sides(
    transform: Transform, axis: Axis, is_open: tuple[bool, bool]
) -> Callable[[jax.Array], jax.Array]:
    """Return the solver for a pressure that is given on at least one side, which makes every system regular."""
    column = [-1] + [1] * (transform.eigenvalues.ndim - 1)
    # Rounding may make the smallest eigenvalue of closed axes, which is zero, slightly negative.
    excess = axis.widths.reshape(column) * np.maximum(transform.eigenvalues, 0)
    for row in (0, -1):
        if is_open[-row]:
            excess[row] += 2 / axis.widths[row]
    fraction, inverse = eliminate(excess, 1 / axis.distances)

    def solve(source: jax.Array) -> jax.Array:
        w, e, i = (jnp.asarray(constant, source.dtype) for constant in (-axis.widths, fraction, inverse))
        return transform.from_modes(substitute(transform.to_modes(source), w, e, i))

    return solve


def second_difference(axis: Axis, is_open: tuple[bool, bool] = (False, False)) -> SecondDifference:
    """Return the divergence of the gradient along one axis.

    Args:
        axis: the axis.
        is_open: whether the pressure is zero on its lower and on its upper side.
    """
    if axis.periodic:
        return Periodic(axis.cells, axis.length / axis.cells)
    slopes = np.pad(1 / axis.distances, 1)
    for row in (0, -1):
        if is_open[-row]:
            slopes[row] = 2 / axis.widths[row]
    return matrix_of_slopes(slopes, axis.widths)
