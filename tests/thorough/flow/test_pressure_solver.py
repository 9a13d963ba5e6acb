"""Longer tests of pressure solver."""

from itertools import product

import jax.export
import numpy as np
import pytest

from tests.flow.test_pressure_solver import DERIVED, GRIDS, METHODS, noise, solver, volumes
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every(product(DERIVED, METHODS))
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
