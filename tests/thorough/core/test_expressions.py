"""Expressions: values, derivatives and error messages, the longer ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.expressions.evaluation import SpatialAxis
from simkit.flow.grid import bounded_axis
from tests.core.test_expressions import lowest


def test_lowest_point_of_a_parabola_is_found_between_the_points(x64):
    points = bounded_axis(10, 1.0, 0.0, 1.5).faces

    def place(x, y):
        f = (points[:, None] - x) ** 2 + 2 * (points - y) ** 2 - 3
        return lowest(jnp.asarray(f), (SpatialAxis("x", points), SpatialAxis("y", points)))

    # Exact for parabolas, and so are the derivatives.
    np.testing.assert_allclose(place(0.42, 0.67), [0.42, 0.67, -3], rtol=0, atol=1e-13)
    slopes = jax.jacobian(place, (0, 1))(0.42, 0.67)
    np.testing.assert_allclose(jnp.stack(slopes, 1), np.eye(3)[:, :2], rtol=0, atol=1e-12)
    # Also between the last two points; and beyond the last the field has none, so that its lowest value is there.
    edge = points[1] / 3
    np.testing.assert_allclose(place(edge, 0.67), [edge, 0.67, -3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(place(1.2, 0.67), [1, 0.67, 0.04 - 3], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e-30])
def test_lowest_point_of_a_constant_field_is_finite_and_has_derivatives(x64, dtype, size):
    axes = (SpatialAxis("x", np.linspace(0, 1, 6)), SpatialAxis("y", np.linspace(0, 1, 4)))
    # Constant but for the last bits.
    bits = np.random.default_rng(1).integers(-1, 2, (6, 4)) * np.finfo(dtype).eps

    def found(size):
        return lowest(size * jnp.asarray(1 + bits, dtype), axes)

    for function in (found, lambda size: lowest(size * jnp.ones((6, 4), dtype), axes)):
        assert jnp.all(jnp.isfinite(function(dtype(size))))
        assert jnp.all(jnp.isfinite(jax.jacrev(function)(dtype(size))))
