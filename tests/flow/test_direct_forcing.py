import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.checks import check_obstacle
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.shapes import ball, rotate, superellipse
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def at_rest(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


def run(equations, params, steps, velocity):
    start, step = stepper(equations)

    @jax.jit
    def advance(params):
        return jax.lax.scan(lambda s, _: (step(s, params), None), start(velocity, params), None, length=steps)[0]

    return advance(params)


@functools.cache
def body_in_a_box(sides, viscosity):
    place = domain((periodic_axis(24, 1.5), bounded_axis(18, 1.0) if sides else periodic_axis(16, 1.0)), (None, sides))

    def shape(p):
        return rotate(superellipse((p["x"], p["y"]), (0.22, p["half_axis"])), p["angle"], (p["x"], p["y"]))

    body = DirectForcing(place, {"body": Body(shape, lambda p: (p["x"], p["y"]))})
    equations = Equations(place, lambda p: viscosity, fixed_time_step, force=lambda *_: FORCE, obstacle=body)
    # The center lies on faces, so that normals point along axes and change sides with the place.
    values = {"time_step": 0.2 / 18**2 / viscosity, "x": 0.75, "y": 0.5, "half_axis": 0.15, "angle": 0.0}
    return equations, {name: jnp.asarray(value) for name, value in values.items()}


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
        check_obstacle(shape, place)
    assert "\n" not in str(error.value)


def test_a_position_outside_the_domain_is_named():
    place = domain((bounded_axis(20, 1.0), bounded_axis(20, 1.0)), (("wall", "wall"), ("wall", "wall")))
    with pytest.raises(UserError, match=r"its position has y = 5\.5, and the domain is from 0 to 1; move it inside"):
        check_obstacle(ball((0.5, 5.5), 0.2), place, position=(0.5, 5.5))


@every([0.4741])
def test_the_thickness_of_a_body_does_not_depend_on_its_place_on_the_grid(center):
    """3.2 and 2.8 cells across, of which 3 are wanted."""
    place = domain((bounded_axis(16, 1.0), bounded_axis(16, 1.0)), (("wall", "wall"), ("wall", "wall")))
    check_obstacle(ball((center, 0.51), 1.6 / 16), place)
    with pytest.raises(UserError, match=r"is about 0\.1[67]\d* across where cells are 0\.0625 wide"):
        check_obstacle(ball((center, 0.51), 1.4 / 16), place)
