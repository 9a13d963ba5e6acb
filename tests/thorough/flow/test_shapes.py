"""Longer tests of shapes."""

import jax
import numpy as np
import pytest

from simkit.flow.obstacles.shapes import airfoil, ball, box, capsule, polygon, rotate, superellipse, translate, union
from tests.flow.test_bodies import X, Y
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

SHAPES = {
    "ball": lambda p: ball((p, 0.25), 0.5),
    "box": lambda p: box((p, 0.25), (0.6, 0.4), 0.1),
    "superellipse": lambda p: superellipse((p, 0.25), (0.6, 0.4), 4.0),
    "ellipse": lambda p: superellipse((p, 0.25), (0.6, 0.4)),
    "union": lambda p: union(ball((p, 0.0), 0.5), box((0.5, 0.5), (0.4, 0.3)), smoothing=0.2),
    "rotated": lambda p: rotate(superellipse((0.0, 0.0), (0.6, 0.4)), p, (0.0, 0.0)),
    "polygon": lambda p: polygon([(p, 0.0), (1.25, 0.25), (0.5, 1.0), (0.5, 0.5)]),
    "airfoil": lambda p: airfoil((0.02, 0.4, 0.4 * p), 1.75),
    "capsule": lambda p: capsule((p, 0.25), (1.0, 0.75), 0.3),
    "translated": lambda p: translate(ball((0.0, 0.0), 0.5), (p, p)),
}


@every(["ball", "union", "polygon", "superellipse"])
def test_derivatives_are_finite_everywhere_and_equal_differences(name):
    # The parameter puts the center on a point of the grid.
    def values(p):
        return SHAPES[name](p)(X, Y)

    @jax.jit
    def derived(p):
        return values(p), jax.jacfwd(values)(p), jax.grad(lambda p: values(p).sum())(p)

    _, forward, reverse = derived(0.25)
    assert np.isfinite(forward).all() and np.isfinite(reverse)
    # Off the creases of a distance, that is away from where one-sided differences disagree.
    step = 1e-6
    (ahead, _, _), (here, slopes, _), (behind, _, _) = (
        jax.tree.map(np.asarray, derived(p)) for p in (0.31 + step, 0.31, 0.31 - step)
    )
    smooth = np.abs(ahead - 2 * here + behind) < 1e-3 * step
    assert smooth.mean() > 0.9
    # Rounding 1e-16/1e-6 and the step squared.
    np.testing.assert_allclose(slopes[smooth], ((ahead - behind) / (2 * step))[smooth], rtol=1e-7, atol=1e-9)
