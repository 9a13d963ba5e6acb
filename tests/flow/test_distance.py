import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import Grid, bounded_axis, periodic_axis
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.shapes import ball

pytestmark = pytest.mark.usefixtures("x64")

GRID = Grid((periodic_axis(64, 1.0), bounded_axis(64, 1.0)))


def test_normals_point_outward_and_vanish_where_undefined():
    distance, normal = jax.jit(lambda x, y: distance_and_normal(ball((0.5, 0.5), 0.25), [x, y]))(
        np.array([0.5, 0.8]), np.array([0.5, 0.9])
    )
    np.testing.assert_allclose(distance, [-0.25, 0.25])
    np.testing.assert_allclose(normal, [[0, 0.6], [0, 0.8]])


def test_a_level_set_function_is_converted_to_a_distance():
    x = [jnp.asarray(p) for p in positions(None, GRID)]

    @jax.jit
    def distances(x):
        level = distance_and_normal(lambda a, b: 7 * ((a - 0.5) ** 2 + (b - 0.47) ** 2 - 0.09), x)
        return distance_and_normal(ball((0.5, 0.47), 0.3), x)[0], *level

    true, other, normal = (np.asarray(f) for f in distances(x))
    near = np.abs(true) < 2 / 64
    # (r^2 - R^2)/(2 r) differs from r - R by (r - R)^2/(2 r).
    assert np.max(np.abs(other - true)[near]) < (2 / 64) ** 2 / (2 * 0.26)
    np.testing.assert_allclose(sum(n**2 for n in normal), 1)


def test_derivatives_with_respect_to_the_position_are_finite_at_the_center():
    def total(x):
        distance, normal = distance_and_normal(ball((x, 0.5), 0.25), [jnp.array(0.5), jnp.array(0.5)])
        return distance + sum(normal)

    assert np.isfinite(jax.jit(jax.grad(total))(0.5))
