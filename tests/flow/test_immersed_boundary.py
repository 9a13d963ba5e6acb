import jax
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary, points_around
from simkit.flow.obstacles.kernel import SUPPORT, fluid_fraction, kernel
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.outline import check_outline, outline
from simkit.flow.obstacles.shapes import ball, rotate, superellipse, union
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

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
    with pytest.raises(UserError, match="method 'immersed_boundry' is unknown; did you mean 'immersed_boundary'"):
        bodies_in(plane, "immersed_boundry", body(plane).bodies, lambda p: 0.02)
