import functools
from itertools import cycle, product

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import Grid, axis_of_faces, bounded_axis, periodic_axis
from simkit.flow.solvers.modes import Transform
from simkit.flow.solvers.pressure import pressure_solver, second_difference
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
def test_both_methods_agree(grid):
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


DERIVED = ("periodic-stretched", "equal-random-periodic")


MIRRORED = [("equal", "stretched"), ("periodic", "stretched"), ("stretched", "equal", "periodic")]


@every([(MIRRORED[0], (8, 6, 4)), (MIRRORED[2], (7, 9, 5))])
def test_mirror_symmetry_changes_the_cost_and_not_the_solution(kinds, cells):
    grid = make_grid(kinds, cells)
    f = noise(grid, 9)

    @jax.jit
    def there_and_back(f):
        pairs = []
        for fold in (True, False):
            transform = Transform([second_difference(axis) for axis in grid.axes], fold=fold)
            amplitudes = transform.to_modes(f)
            filtered = amplitudes / (1 + transform.eigenvalues)
            pairs.append((transform.from_modes(amplitudes), transform.from_modes(filtered)))
        return pairs

    (back, filtered), (other_back, other_filtered) = jax.tree.map(np.asarray, there_and_back(f))
    # A few roundings of numbers of size 3.
    assert max(np.abs(g - f).max() for g in (back, other_back)) < 1e-14
    assert np.abs(filtered - other_filtered).max() < 1e-14
