import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.obstacles.shapes import ball, box, complement, half_space, rotate, superellipse, translate, union

pytestmark = pytest.mark.usefixtures("x64")

# Points near and far, on axes, at centers and on surfaces.
X, Y = (a.ravel() for a in np.meshgrid(np.linspace(-2, 2, 17), np.linspace(-1.5, 1.5, 13)))

SHAPES = {
    "ball": lambda p: ball((p, 0.25), 0.5),
    "box": lambda p: box((p, 0.25), (0.6, 0.4), 0.1),
    "superellipse": lambda p: superellipse((p, 0.25), (0.6, 0.4), 4.0),
    "ellipse": lambda p: superellipse((p, 0.25), (0.6, 0.4)),
    "union": lambda p: union(ball((p, 0.0), 0.5), box((0.5, 0.5), (0.4, 0.3)), smoothing=0.2),
    "rotated": lambda p: rotate(superellipse((0.0, 0.0), (0.6, 0.4)), p, (0.0, 0.0)),
    "translated": lambda p: translate(ball((0.0, 0.0), 0.5), (p, p)),
}


def test_distances_are_those_of_elementary_geometry():
    np.testing.assert_allclose(ball((1.0, 1.0), 0.5)(4.0, 5.0), 4.5)
    np.testing.assert_allclose(ball((1.0, 1.0, 0.0), 0.5)(1.0, 3.0, 0.0), 1.5)
    square = box((0.0, 0.0), (1.0, 0.5))
    np.testing.assert_allclose([square(0.0, 0.0), square(2.0, 0.0), square(4.0, 4.5)], [-0.5, 1.0, 5.0])
    np.testing.assert_allclose(box((0.0, 0.0), (1.0, 1.0), 1.0)(3.0, 4.0), ball((0.0, 0.0), 1.0)(3.0, 4.0))
    np.testing.assert_allclose(half_space((0.0, 1.0), (0.6, 0.8))(0.0, 2.0), 0.8)
    np.testing.assert_allclose(complement(square)(2.0, 0.0), -1.0)
    ellipse = superellipse((0.0, 0.0), (2.0, 1.0))
    np.testing.assert_allclose([ellipse(2.0, 0.0), ellipse(0.0, -1.0), ellipse(1.2, 0.8)], 0, atol=1e-15)


def test_a_body_turned_by_a_right_angle_exchanges_its_axes():
    turned = rotate(box((0.3, 0.1), (0.6, 0.2)), jnp.pi / 2, (0.3, 0.1))
    np.testing.assert_allclose(turned(X, Y), box((0.3, 0.1), (0.2, 0.6))(X, Y), atol=1e-15)


def test_a_body_turns_counterclockwise():
    turned = rotate(box((0.0, 0.0), (1.0, 0.1)), jnp.pi / 6, (0.0, 0.0))
    assert turned(0.9 * np.cos(np.pi / 6), 0.9 * np.sin(np.pi / 6)) < 0 < turned(0.9 * np.cos(np.pi / 6), -0.45)


def test_a_union_is_what_is_in_either_and_smoothing_only_fills():
    one, other = ball((0.0, 0.0), 0.5), box((0.5, 0.5), (0.4, 0.3))
    sharp, smooth = union(one, other)(X, Y), union(one, other, smoothing=0.2)(X, Y)
    np.testing.assert_array_equal(sharp < 0, (one(X, Y) < 0) | (other(X, Y) < 0))
    # The filling is deepest, smoothing/4, where both are equally near.
    assert (smooth <= sharp).all() and (smooth >= sharp - 0.05 - 1e-15).all() and (smooth < sharp).any()


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_finite_everywhere_and_equal_differences(name):
    # The parameter puts the center on a point of the grid.
    def values(p):
        return SHAPES[name](p)(X, Y)

    derivative = jax.jacfwd(values)(0.25)
    assert jnp.isfinite(derivative).all()
    assert jnp.isfinite(jax.grad(lambda p: values(p).sum())(0.25)).all()
    # Off the creases of a distance, that is away from where one-sided differences disagree.
    step = 1e-6
    ahead, here, behind = values(0.31 + step), values(0.31), values(0.31 - step)
    smooth = jnp.abs(ahead - 2 * here + behind) < 1e-3 * step
    assert smooth.mean() > 0.9
    # Rounding 1e-16/1e-6 and the step squared.
    np.testing.assert_allclose(
        jax.jacfwd(values)(0.31)[smooth], ((ahead - behind) / (2 * step))[smooth], rtol=1e-7, atol=1e-9
    )
