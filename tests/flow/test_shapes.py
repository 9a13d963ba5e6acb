import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.obstacles.shapes import (
    airfoil,
    ball,
    box,
    capsule,
    complement,
    cylinder,
    half_space,
    polygon,
    superellipse,
    union,
)

pytestmark = pytest.mark.usefixtures("x64")

# Points near and far, on axes, at centers and on surfaces.
X, Y = (a.ravel() for a in np.meshgrid(np.linspace(-2, 2, 17), np.linspace(-1.5, 1.5, 13)))


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


def test_distances_from_polygons_are_those_of_elementary_geometry():
    for vertices in ([(-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5)], [(-1, 0.5), (1, 0.5), (1, -0.5), (-1, -0.5)]):
        np.testing.assert_allclose(polygon(vertices)(X, Y), box((0.0, 0.0), (1.0, 0.5))(X, Y), atol=1e-14)
    # One with a notch, in which the nearest point may be a vertex of the inside.
    arrow = polygon([(0.0, 0.0), (2.0, 0.0), (1.0, 0.5), (2.0, 1.0), (0.0, 1.0)])
    np.testing.assert_allclose(arrow(0.75, 0.5), -0.25)
    np.testing.assert_allclose(arrow(1.5, 0.5), 0.25 / np.sqrt(1.25))
    np.testing.assert_allclose(arrow(-3.0, -4.0), 5.0)
    with pytest.raises(UserError, match="at least three points"):
        polygon([(0.0, 0.0), (1.0, 0.0)])


def test_an_airfoil_has_the_thickness_and_camber_of_its_digits():
    # Ordinates at 0.4 of the chord: Abbott and von Doenhoff, Theory of Wing Sections (1959), appendix III.
    for digits, upper, lower in (("0012", 0.05803, -0.05803), ("4412", 0.0980, -0.0180)):
        heights = np.linspace(-0.1, 0.15, 5001)
        within = heights[np.array(airfoil(digits, 1.0, 100)(0.4, heights)) < 0]
        np.testing.assert_allclose([within.max(), within.min()], [upper, lower], atol=2e-4)
    with pytest.raises(UserError, match="digits = '12'; give four digits"):
        airfoil("12")


def test_bodies_of_finite_length_have_the_distances_of_elementary_geometry():
    pill = capsule((0.0, 0.0, -1.0), (0.0, 0.0, 1.0), 0.5)
    np.testing.assert_allclose([pill(3.0, 0.0, 0.5), pill(0.0, 3.0, 5.0), pill(0.0, 0.0, 0.0)], [2.5, 4.5, -0.5])
    rod = cylinder((0.0, 0.0, 1.0), 0.5, 2.0)
    np.testing.assert_allclose([rod(3.5, 0.0, 7.0), rod(0.0, 0.0, 1.25), rod(0.0, 0.25, 2.9)], [5.0, -0.5, -0.1])
    np.testing.assert_allclose(cylinder((0.0, 0.0, 0.0), 0.5, 2.0, axis=0)(2.5, 0.0, 0.2), 0.5)


def test_a_union_contains_both_shapes_and_smoothing_only_adds():
    one, other = ball((0.0, 0.0), 0.5), box((0.5, 0.5), (0.4, 0.3))
    sharp, smooth = union(one, other)(X, Y), union(one, other, smoothing=0.2)(X, Y)
    np.testing.assert_array_equal(sharp < 0, (one(X, Y) < 0) | (other(X, Y) < 0))
    # The filling is deepest, smoothing/4, where both are equally near.
    assert (smooth <= sharp).all() and (smooth >= sharp - 0.05 - 1e-15).all() and (smooth < sharp).any()
