import functools
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.solvers.diffusion import diffusion_solver
from simkit.flow.solvers.modes import Periodic
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def second_difference(widths):
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


EQUAL = second_difference(np.full(8, 0.25))
STRETCHED = second_difference(0.3 * np.sin(np.pi * (np.arange(9) + 0.7) / 9.4))
RANDOM = second_difference(np.random.default_rng(0).uniform(0.1, 0.2, 7))
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

METHODS = ("elimination", "modes")
QUICK = ("wall-normal", "duct", "periodic", "explicit")


@functools.cache
def solver(name, method):
    return jax.jit(diffusion_solver(CASES[name], method))


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


def noise(name, seed=0):
    shape = [len(matrix_of(axis)) for axis in CASES[name]]
    return np.random.default_rng(seed).standard_normal(shape)


@every(product(QUICK, METHODS, [0.0, 1e-3, 10.0]))
def test_change_satisfies_the_equation(name, method, coefficient):
    source = noise(name)
    change = np.asarray(solver(name, method)(source, coefficient))
    residual = change - coefficient * laplacian(change, name) - source
    # The change, of the size of the source, 3, is known to about 20 eps, half an eps for each of the terms summed up;
    # the operator magnifies that by at most the sum over the axes of twice the largest diagonal entry.
    largest = 1 + coefficient * sum(2 * np.abs(np.diag(matrix_of(axis))).max() for axis in CASES[name])
    assert np.abs(residual).max() < 20 * np.finfo(float).eps * largest * np.abs(change).max()


@every(QUICK)
def test_both_methods_agree(name):
    one, other = (np.asarray(solver(name, method)(noise(name, 2), 0.1)) for method in METHODS)
    # Rounding of numbers of size 3 and sums of up to 9 of them.
    assert np.abs(one - other).max() < 1e-14


@every(product(["duct"], METHODS))
def test_single_precision_is_kept_and_accurate(name, method):
    source = noise(name, 3)
    exact = solver(name, method)(source, 1.0)
    found = solver(name, method)(jnp.asarray(source, jnp.float32), jnp.asarray(1.0, jnp.float32))
    assert found.dtype == jnp.float32
    # Roundings of the source, 3 * half an eps each, about 20 of them; the solver damps every mode.
    assert np.abs(np.asarray(found) - np.asarray(exact)).max() < 30 * np.finfo(np.float32).eps
