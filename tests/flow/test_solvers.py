"""Solvers of pressure and implicit friction, and the tridiagonal systems in them."""

import functools
from itertools import cycle, product

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import Grid, axis_of_faces, bounded_axis, periodic_axis
from simkit.flow.solvers.diffusion import diffusion_solver
from simkit.flow.solvers.modes import BatchedModes, Periodic
from simkit.flow.solvers.pressure import pressure_solver, second_difference
from simkit.flow.solvers.tridiagonal import eliminate, eliminate_traced, substitute
from tests.flow.flows import numpy_divergence as divergence
from tests.flow.flows import numpy_gradient as gradient
from tests.flow.flows import some
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


LENGTHS = (3.0, 2.0, 1.5)


def make_axis(kind, cells, length=2.0):
    if kind == "periodic":
        return periodic_axis(cells, length)
    if kind == "random":
        # No symmetry, and neighbors that differ in width by up to a factor of two.
        widths = np.random.default_rng(cells).uniform(0.7, 1.4, cells)
        return axis_of_faces(length * np.concatenate([[0.0], np.cumsum(widths) / widths.sum()]))
    return bounded_axis(cells, length, stretching={"equal": 0.0, "stretched": 1.5}[kind])


def make_grid(kinds, cells):
    return Grid(tuple(make_axis(*arguments) for arguments in zip(kinds, cells, LENGTHS, strict=False)))


# In two dimensions every pair of kinds, even and odd numbers of cells in turn; in three every mixture of boundaries.
KINDS = ("periodic", "equal", "stretched", "random")
SIZES = cycle([(8, 7), (9, 12), (12, 6), (7, 9)])
THREE = [
    ("periodic", "periodic", "periodic"),
    ("periodic", "stretched", "periodic"),
    ("random", "periodic", "periodic"),
    ("periodic", "periodic", "equal"),
    ("periodic", "stretched", "random"),
    ("equal", "random", "periodic"),
    ("stretched", "periodic", "equal"),
    ("random", "equal", "stretched"),
]
GRIDS = {"-".join(kinds): make_grid(kinds, next(SIZES)) for kinds in product(KINDS, repeat=2)}
GRIDS |= {"-".join(kinds): make_grid(kinds, (8, 6, 7) if i % 2 else (5, 8, 6)) for i, kinds in enumerate(THREE)}

METHODS = ("elimination", "modes")
QUICK = ("periodic-periodic", "periodic-stretched", "random-equal", "equal-random-periodic", "random-equal-stretched")


@functools.cache
def solver(name, method):
    return jax.jit(pressure_solver(GRIDS[name], method))


def volumes(grid):
    return functools.reduce(np.multiply.outer, [axis.widths for axis in grid.axes])


def stiffness(grid):
    """A bound on the eigenvalues of the operator."""
    return sum(4 / np.min(axis.widths) ** 2 for axis in grid.axes)


def noise(grid, seed=0):
    source = np.random.default_rng(seed).standard_normal(grid.cells)
    return source - np.average(source, weights=volumes(grid))


# Each transform sums up to 12 products and each recurrence runs over up to 12 rows, there and back: 4 * 12 roundings
# of half an eps along every axis, most of which cancel.
ROUNDINGS = 24
ROUNDING = ROUNDINGS * np.finfo(float).eps


@every(product(QUICK, METHODS))
def test_solver_inverts_the_operator(name, method):
    grid = GRIDS[name]
    p = noise(grid, 2)
    found = np.asarray(solver(name, method)(divergence(gradient(p, grid), grid)))
    # The source is rounded relative to the largest eigenvalue; dividing by the smallest, at least about
    # 8/length^2 with the longest length 3, magnifies that.
    condition = stiffness(grid) / (8 / 9)
    assert np.abs(found - p).max() < ROUNDING * condition * np.abs(p).max()


@every(some(GRIDS, *QUICK))
def test_both_methods_of_the_pressure_agree(grid):
    name = next(name for name in GRIDS if GRIDS[name] is grid)
    one, other = (np.asarray(solver(name, method)(noise(grid, 3))) for method in METHODS)
    # Both are accurate to a few roundings of the largest pressure, however small the eigenvalues: see the next test.
    assert np.abs(one - other).max() < 2 * ROUNDING * np.abs(one).max()


@every(["elimination"])
def test_pressure_is_accurate_in_single_precision_where_the_operator_is_ill_conditioned(method):
    # A long box with thin cells: the condition number 3e7 is beyond one over eps.
    grid = Grid((periodic_axis(32, 60.0), bounded_axis(128, 2.0, stretching=2.0)))
    source = noise(grid, 4)
    exact = jax.jit(pressure_solver(grid, method))(source)
    found = jax.jit(pressure_solver(grid, method))(jnp.asarray(source, jnp.float32))
    assert found.dtype == jnp.float32
    # 2 * 128 additions of random rounding errors of half an eps: 8 eps.
    assert jnp.max(jnp.abs(found - exact)) < 8 * np.finfo(np.float32).eps * jnp.max(jnp.abs(exact))


MIRRORED = [("equal", "stretched"), ("periodic", "stretched"), ("stretched", "equal", "periodic")]


@every([(MIRRORED[0], (8, 6, 4)), (MIRRORED[2], (7, 9, 5))])
def test_mirror_symmetry_changes_the_cost_and_not_the_solution(kinds, cells):
    grid = make_grid(kinds, cells)
    f = noise(grid, 9)

    @jax.jit
    def there_and_back(f):
        matrices, responses = [[second_difference(axis) for axis in grid.axes]], (jnp.ones_like, lambda e: 1 / (1 + e))
        solvers = [BatchedModes(matrices, fold=fold) for fold in (True, False)]
        return [[modes.filtered([f], response)[0] for response in responses] for modes in solvers]

    (back, filtered), (other_back, other_filtered) = jax.tree.map(np.asarray, there_and_back(f))
    # A few roundings of numbers of size 3.
    assert max(np.abs(g - f).max() for g in (back, other_back)) < 1e-14
    assert np.abs(filtered - other_filtered).max() < 1e-14


def friction_matrix(widths):
    """Second difference of values that vanish on both ends, at the centers of cells of the given widths.

    The gradient at an end is that of the parabola through the end and the two nearest centers.
    """
    n = len(widths)
    faces = np.concatenate([[0.0], np.cumsum(widths)])
    centers = (faces[1:] + faces[:-1]) / 2
    slope = np.zeros((n + 1, n))
    slope[1:-1] = np.diff(np.eye(n), axis=0) / np.diff(centers)[:, None]
    for row, (near, far), (a, b), sign in (
        (0, (0, 1), centers[:2], 1),
        (n, (-1, -2), faces[-1] - centers[[-1, -2]], -1),
    ):
        slope[row, near], slope[row, far] = sign * b / (a * (b - a)), -sign * a / (b * (b - a))
    return np.diff(slope, axis=0) / widths[:, None]


EQUAL = friction_matrix(np.full(8, 0.25))
STRETCHED = friction_matrix(0.3 * np.sin(np.pi * (np.arange(9) + 0.7) / 9.4))
RANDOM = friction_matrix(np.random.default_rng(0).uniform(0.1, 0.2, 7))
AROUND = Periodic(6, 0.3)

# The axes of the arrays, with None and its length for an axis that is not treated implicitly.
CASES = {
    "wall-normal": (None, STRETCHED),
    "wall-normal first": (RANDOM, None),
    "wall-normal in 3-D": (None, EQUAL, None),
    "wall-normal and spanwise in 3-D": (None, RANDOM, AROUND),
    "channel": (AROUND, STRETCHED),
    "cavity": (EQUAL, RANDOM),
    "periodic": (AROUND, Periodic(5, 0.2)),
    "periodic along one axis": (AROUND, None),
    "channel in 3-D": (AROUND, EQUAL, Periodic(5, 0.2)),
    "duct": (AROUND, RANDOM, EQUAL),
    "explicit": (None, None),
}
OMITTED = 4

QUICK_CASES = ("wall-normal", "wall-normal in 3-D", "duct", "periodic", "explicit")


@functools.cache
def friction_solver(name, method):
    solve = diffusion_solver([CASES[name]], method)
    return jax.jit(lambda source, coefficient: solve([source], coefficient, [None])[0])


def matrix_of(axis):
    if axis is None:
        return np.zeros((OMITTED, OMITTED))
    if isinstance(axis, np.ndarray):
        return axis
    n = axis.cells
    return (np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0) - 2 * np.eye(n)) / axis.width**2


def laplacian(f, name):
    total = np.zeros_like(f)
    for i, axis in enumerate(CASES[name]):
        total += np.moveaxis(np.tensordot(matrix_of(axis), f, (1, i)), 0, i)
    return total


def noise_of_case(name, seed=0):
    shape = [len(matrix_of(axis)) for axis in CASES[name]]
    return np.random.default_rng(seed).standard_normal(shape)


@every(product(QUICK_CASES, METHODS, [0.0, 1e-3, 10.0]))
def test_change_satisfies_the_equation(name, method, coefficient):
    source = noise_of_case(name)
    change = np.asarray(friction_solver(name, method)(source, coefficient))
    residual = change - coefficient * laplacian(change, name) - source
    # The change, of the size of the source, 3, is known to about 20 eps, half an eps for each of the terms summed up;
    # the operator magnifies that by at most the sum over the axes of twice the largest diagonal entry.
    largest = 1 + coefficient * sum(2 * np.abs(np.diag(matrix_of(axis))).max() for axis in CASES[name])
    assert np.abs(residual).max() < 20 * np.finfo(float).eps * largest * np.abs(change).max()


@every(QUICK_CASES)
def test_both_methods_of_implicit_friction_agree(name):
    one, other = (np.asarray(friction_solver(name, method)(noise_of_case(name, 2), 0.1)) for method in METHODS)
    # Rounding of numbers of size 3 and sums of up to 9 of them.
    assert np.abs(one - other).max() < 1e-14


def test_modes_of_one_bounded_axis_read_an_array_by_one_product_unless_that_axis_is_longer_than_the_others():
    solve = diffusion_solver([(None, STRETCHED, None)], "modes")

    def ranks_of_products(across):
        traced = jax.make_jaxpr(solve)([np.ones((across, len(STRETCHED), 1))], 0.1, [None])
        return [len(each.outvars[0].aval.shape) for each in traced.eqns if each.primitive.name == "dot_general"]

    # The product of the tables, a matrix for each half, and that with the array; or two with the array.
    assert ranks_of_products(across=5) == [3, 4]
    assert ranks_of_products(across=4) == [4, 4]


@every(product(["duct", "wall-normal in 3-D"], METHODS))
def test_single_precision_is_kept_and_accurate(name, method):
    source = noise_of_case(name, 3)
    exact = friction_solver(name, method)(source, 1.0)
    found = friction_solver(name, method)(jnp.asarray(source, jnp.float32), jnp.asarray(1.0, jnp.float32))
    assert found.dtype == jnp.float32
    # Roundings of the source, 3 * half an eps each, about 20 of them; the solver damps every mode.
    assert np.abs(np.asarray(found) - np.asarray(exact)).max() < 30 * np.finfo(np.float32).eps


N = 9
RANDOM_SYSTEM = np.random.default_rng(0)
EXCESS = RANDOM_SYSTEM.uniform(0.1, 2, (N, 3, 2))
COUPLING = RANDOM_SYSTEM.uniform(0.5, 2, N - 1)
WEIGHTS = RANDOM_SYSTEM.uniform(0.5, 2, N)
SOURCE = RANDOM_SYSTEM.standard_normal((2, N, 3, 2))


def dense(excess, coupling):
    """The matrix of one system, from the balance of row j as the module states it."""
    jumps = np.diff(np.eye(len(excess)), axis=0)
    return np.diag(excess) + jumps.T @ (coupling[:, None] * jumps)


@every(["real", "complex"])
def test_substitution_solves_every_system(kind):
    source = SOURCE[0] + 1j * SOURCE[1] if kind == "complex" else SOURCE[0]
    found = jax.jit(substitute)(jnp.asarray(source), WEIGHTS, *eliminate(EXCESS, COUPLING))
    for i, j in np.ndindex(3, 2):
        expected = np.linalg.solve(dense(EXCESS[:, i, j], COUPLING), WEIGHTS * source[:, i, j])
        # Rounding 1e-16 times the condition number, at most (2 + 4 * 2)/0.1.
        assert np.abs(found[:, i, j] - expected).max() < 1e-13


def test_last_unknown_of_a_singular_system_is_zero_and_all_other_rows_hold():
    source = SOURCE[0] - np.sum(WEIGHTS[:, None, None] * SOURCE[0], axis=0) / WEIGHTS.sum()
    found = jax.jit(substitute)(jnp.asarray(source), WEIGHTS, *eliminate(np.zeros((N, 3, 2)), COUPLING))
    assert np.all(np.asarray(found)[-1] == 0)
    residual = np.tensordot(dense(np.zeros(N), COUPLING), found, 1) - WEIGHTS[:, None, None] * source
    # The solution, of size 10, is rounded to 1e-15 and multiplied by couplings of up to 2, four to a row.
    assert np.abs(residual).max() < 1e-13


def test_nearly_singular_systems_are_solved_accurately_in_single_precision():
    # With an excess of an eps of the coupling the matrix itself, once rounded, is that of another problem.
    n = 256
    excess, coupling = np.full((n, 1), 1e-7), np.ones(n - 1)
    source = np.cos(np.pi * (np.arange(n) + 0.5) / n)[:, None] + 0.3
    exact = np.linalg.solve(dense(excess[:, 0], coupling), source)
    single = [jnp.asarray(f, jnp.float32) for f in (source, np.ones(n), *eliminate(excess, coupling))]
    found = jax.jit(substitute)(*single)
    assert found.dtype == jnp.float32
    # Each of the 2 n additions rounds by at most half an eps; as random signs they add up to sqrt(2 n)/2 = 11 eps.
    assert np.abs(found - exact).max() < 11 * np.finfo(np.float32).eps * np.abs(exact).max()


def test_derivative_with_respect_to_the_coefficients_matches_differences():
    def total(shift):
        coefficients = eliminate_traced(jnp.asarray(EXCESS) + shift, jnp.asarray(COUPLING) * (1 + shift))
        return jnp.sum(substitute(jnp.asarray(SOURCE[0]), jnp.asarray(WEIGHTS), *coefficients) ** 2)

    h, value = 1e-5, jax.jit(total)
    differences = (value(h) - value(-h)) / (2 * h)
    # Central differences err by h^2 and by rounding 1e-15/h.
    assert jax.jit(jax.grad(total))(0.0) == pytest.approx(float(differences), rel=1e-7)
    assert jax.jit(jax.jacfwd(total))(0.0) == pytest.approx(float(differences), rel=1e-7)
