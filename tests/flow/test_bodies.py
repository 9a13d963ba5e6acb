"""Bodies: shapes, how they may lie, what holds them, and their scalars."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles import Motion, ScalarSurface
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.checks import check_obstacle, distances_from
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary, points_around
from simkit.flow.obstacles.kernel import SUPPORT, fluid_fraction, kernel
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.outline import check_outline, outline
from simkit.flow.obstacles.shapes import (
    airfoil,
    ball,
    box,
    capsule,
    complement,
    cylinder,
    half_space,
    polygon,
    rotate,
    superellipse,
    union,
)
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from tests.tables import every

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


def of(shape):
    return distances_from(lambda: shape)


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


def at_rest(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


def run(equations, params, steps, velocity):
    start, step = stepper(equations)

    @jax.jit
    def advance(params):
        return jax.lax.scan(lambda s, _: (step(s, params), None), start(velocity, params), None, length=steps)[0]

    return advance(params)


FORCE = (0.7, 0.2)


@every(
    [
        (ball((3.0, 0.5), 0.2), "outside"),
        (ball((0.5, 0.5), 2.0), "fills"),
        (ball((0.5, 0.25), 0.2), r"within 0.0\d+ of the side y = 0"),
        (ball((0.5, 0.5), 0.05), "cells are .* use smaller cells"),
        (ball((0.5, 0.5), np.nan), "not a number"),
    ]
)
def test_a_body_that_does_not_fit_is_refused_in_one_line(shape, message):
    place = domain((bounded_axis(20, 1.0), bounded_axis(20, 1.0)), (("wall", "wall"), ("wall", "wall")))
    with pytest.raises(UserError, match=message) as error:
        check_obstacle(of(shape), place)
    assert "\n" not in str(error.value)


def test_a_position_outside_the_domain_is_named():
    place = domain((bounded_axis(20, 1.0), bounded_axis(20, 1.0)), (("wall", "wall"), ("wall", "wall")))
    with pytest.raises(UserError, match=r"its position has y = 5\.5, and the domain is from 0 to 1; move it inside"):
        check_obstacle(of(ball((0.5, 5.5), 0.2)), place, position=(0.5, 5.5))


@every([0.4741])
def test_the_thickness_of_a_body_does_not_depend_on_its_place_on_the_grid(center):
    """3.2 and 2.8 cells across, of which 3 are wanted."""
    place = domain((bounded_axis(16, 1.0), bounded_axis(16, 1.0)), (("wall", "wall"), ("wall", "wall")))
    check_obstacle(of(ball((center, 0.51), 1.6 / 16)), place)
    with pytest.raises(UserError, match=r"is about 0\.1[67]\d* across where cells are 0\.0625 wide"):
        check_obstacle(of(ball((center, 0.51), 1.4 / 16)), place)


INTEGERS = np.arange(-8.0, 9.0)
PLACES = np.linspace(0, 1, 21)


def test_weights_of_the_kernel_sum_to_one_about_its_center_everywhere():
    weights = np.asarray(jax.jit(kernel)(INTEGERS - PLACES[:, None]))
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-14)
    np.testing.assert_allclose(weights @ INTEGERS, PLACES, atol=1e-14)


def test_fluid_fraction_is_the_integral_of_the_kernel_and_differentiable_at_the_wall():
    ends = np.array([-SUPPORT, 0.0, SUPPORT])

    @jax.jit
    def values(s):
        return jax.vmap(jax.grad(fluid_fraction))(s), kernel(s), fluid_fraction(ends)

    slopes, weights, fractions = values(np.linspace(-3, 3, 25))
    np.testing.assert_allclose(slopes, weights, atol=1e-14)
    np.testing.assert_allclose(fractions, [0, 0.5, 1], atol=1e-14)


def test_points_lie_on_the_outline_at_equal_distances():
    body = rotate(superellipse((0.5, 0.47), (0.3, 0.12)), 0.4, (0.5, 0.47))

    @jax.jit
    def around():
        found = outline(body, (0.5, 0.47), 40, 0.8)
        return found.points, found.normals, found.spacing, body(*found.points)

    points, normals, spacing, distances = (np.asarray(f) for f in around())
    np.testing.assert_allclose(distances, 0, atol=1e-15)
    np.testing.assert_allclose(np.hypot(*normals), 1)
    # Perimeter of the ellipse by Ramanujan's second formula; chords of 320 rays are 1e-4 shorter.
    h = (0.18 / 0.42) ** 2
    assert spacing.sum() == pytest.approx(np.pi * 0.42 * (1 + 3 * h / (10 + np.sqrt(4 - 3 * h))), rel=3e-4)
    gaps = np.hypot(*(points - np.roll(points, 1, axis=1)))
    # Chords of the tip, with a radius of 0.048, are shorter than the arc of 0.034: by 2 %.
    assert np.max(np.abs(gaps / spacing - 1)) < 0.03


@every(
    [
        (ball((0.7, 0.5), 0.1), "pivot .* is outside it"),
        (union(ball((0.5, 0.5), 0.1), ball((0.8, 0.5), 0.1)), "more than once"),
    ]
)
def test_an_outline_that_rays_do_not_meet_once_is_refused(shape, message):
    with pytest.raises(UserError, match=f"{message}.* method direct_forcing"):
        check_outline(shape, (0.5, 0.5), 0.8)


def body(place):
    def shape(p):
        return rotate(superellipse((p["x"], p["y"]), (0.25, p["half_axis"])), p["angle"], (p["x"], p["y"]))

    found = Body(shape, lambda p: (p["x"], p["y"]), points=points_around(1.4, 1 / 16))
    return ImmersedBoundary(place, {"body": found}, lambda p: 0.02)


def test_unsupported_parts_are_refused_by_name():
    plane = domain((periodic_axis(16, 1.0),) * 2, (None, None))
    space = domain((periodic_axis(8, 1.0),) * 3, (None,) * 3)
    for name, place, kwargs in (
        ("three axes", space, {}),
        ("a held flow rate", plane, {"flow_rate": lambda p, t: 1.0}),
        ("implicit friction", plane, {"implicit": (0,)}),
        ("a time step that changes", plane, {"time_step": adaptive_time_step()}),
    ):
        options = {"time_step": fixed_time_step} | kwargs
        equations = Equations(place, lambda p: 0.02, obstacle=body(place), **options)
        with pytest.raises(UserError, match=f"{name}; choose method direct_forcing"):
            stepper(equations)
    forced = DirectForcing(plane, body(plane).bodies)
    for held in (body(plane), forced):
        with pytest.raises(UserError, match="the flow carries one scalar, and body 'body' has conditions of others"):
            stepper(Equations(plane, lambda p: 0.02, fixed_time_step, scalar=object(), obstacle=held))
    with pytest.raises(UserError, match="method = 'immersed_boundry' is unknown; did you mean 'immersed_boundary'"):
        bodies_in(plane, "immersed_boundry", body(plane).bodies, lambda p: 0.02)


VALUE = ScalarSurface(value=lambda p, t: p["value"])


def periodic_box(cells):
    return domain((periodic_axis(cells, 1.0), periodic_axis(cells, 1.0)), (None, None))


def disk(surface, method, moving):
    motion = Motion(lambda p, t: (p["x"] + p["drift"] * t, 0.5)) if moving else None
    center = (0.0, 0.0) if moving else (0.5, 0.5)
    body = Body(
        lambda p: ball(center, 0.22), lambda p: center, motion=motion, points=points_around(1.4, 1 / 16), scalar=surface
    )
    return bodies_in(periodic_box(16), method, {"disk": body}, 0.02)


@every(
    [
        ({"heat": VALUE}, True, "the flow carries the scalars heat, salt, and body 'disk' has conditions of others"),
        (VALUE, True, "the flow carries the scalars heat, salt, and body 'disk' has conditions of others; give"),
        ({"heat": VALUE}, False, "the flow carries one scalar, and body 'disk' has conditions of others; give"),
    ]
)
def test_surfaces_that_are_not_of_the_scalars_of_a_flow_are_refused_by_name(surface, several, message):
    held = disk(surface, "direct_forcing", False)
    one = TransportedScalar(held.domain, (None, None), lambda p: 0.02)
    scalar = TransportedScalars({"heat": one, "salt": one}) if several else one
    with pytest.raises(UserError, match=message):
        stepper(Equations(held.domain, 0.02, fixed_time_step, scalar=scalar, obstacle=held))


@every(
    [
        (None, True, "the flow carries one scalar, and body 'disk' has conditions of others; give it scalar = "),
        (VALUE, False, "the flow carries no scalar, and body 'disk' has conditions of others; give it none"),
        (VALUE, "other", "a body acts on a TransportedScalar or on TransportedScalars only"),
    ]
)
def test_incompatible_bodies_and_scalars_are_refused_by_name(surface, carried, message):
    held = disk(surface, "direct_forcing", False)
    scalar = TransportedScalar(held.domain, (None, None), lambda p: 0.02) if carried is True else None
    equations = Equations(
        held.domain, 0.02, fixed_time_step, scalar=object() if carried == "other" else scalar, obstacle=held
    )
    with pytest.raises(UserError, match=message):
        stepper(equations)
    with pytest.raises(UserError, match="give one of value and flux"):
        ScalarSurface()
