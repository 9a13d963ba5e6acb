"""Longer tests of pressure solver."""

from itertools import product

import jax.export
import numpy as np
import pytest

from tests.flow.flows import drawn, over
from tests.flow.flows import numpy_divergence as divergence
from tests.flow.flows import numpy_gradient as gradient
from tests.flow.test_pressure_solver import DERIVED, GRIDS, METHODS, QUICK, ROUNDING, noise, solver, stiffness, volumes

pytestmark = pytest.mark.usefixtures("x64")


@over(product(QUICK, METHODS))
def test_pressure_satisfies_the_equation_in_every_cell(name, method):
    grid = GRIDS[name]
    source = noise(grid)
    p = np.asarray(solver(name, method)(source))
    residual = divergence(gradient(p, grid), grid) - source
    # Rounding errors of the pressure are magnified by at most the largest eigenvalue.
    assert np.abs(residual).max() < ROUNDING * stiffness(grid) * np.abs(p).max()
    assert abs(np.average(p, weights=volumes(grid))) < ROUNDING * np.abs(p).max()


@over(product(DERIVED, METHODS))
def test_solver_is_self_adjoint_and_its_transpose_too(name, method):
    grid, weights = GRIDS[name], volumes(GRIDS[name])
    a, b = noise(grid, 7), noise(grid, 8)

    @jax.jit
    def derived(a, b):
        solve = solver(name, method)
        p, pull = jax.vjp(solve, a)
        return p, pull(b)[0], jax.jvp(solve, (a,), (b,))[1], solve(b)

    p, pulled, pushed, other = (np.asarray(x) for x in derived(a, b))
    assert np.sum(b * p) == pytest.approx(np.sum(a * pulled), rel=1e-12)
    # With the volumes as weights the operator is symmetric: integrate by parts twice.
    assert np.sum(weights * b * p) == pytest.approx(np.sum(weights * a * other), rel=1e-12)
    assert np.allclose(pushed, other, rtol=0, atol=1e-15)


@over(product(QUICK, METHODS))
def test_projected_velocity_has_no_divergence_in_any_row(name, method):
    grid = GRIDS[name]
    velocity = drawn(grid, 1)
    before = divergence(velocity, grid)
    p = np.asarray(solver(name, method)(before))
    after = divergence([u - g for u, g in zip(velocity, gradient(p, grid), strict=True)], grid)
    assert np.abs(before).max() > 1
    assert np.abs(after).max() < ROUNDING * stiffness(grid) * np.abs(p).max()
