"""Outlines whose rays meet corners and edges exactly: points, normals and derivatives in both precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.flow.obstacles.outline import check_outline, outline
from simkit.flow.obstacles.shapes import airfoil, box, capsule, polygon, translate, union

SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
ORIGIN = (0.0, 0.0)
# Each grows in proportion to its size.
GROWING = {
    "square": lambda size: polygon(size * jnp.asarray(SQUARE)),
    "square, clockwise": lambda size: polygon(size * jnp.asarray(SQUARE[::-1])),
    "triangle": lambda size: polygon(size * jnp.asarray([(-0.5, -0.5), (0.6, 0.0), (-0.5, 0.5)])),
    "airfoil": lambda size: translate(airfoil("2412", size), (-size / 4, 0.0)),
    "box": lambda size: box(ORIGIN, (size / 2, size / 2)),
    "rounded box": lambda size: box(ORIGIN, (size / 2, size / 4), size / 4),
    "cross": lambda size: union(box(ORIGIN, (size / 2, size / 5)), box(ORIGIN, (size / 5, size / 2))),
    "capsule": lambda size: capsule((-0.4 * size, 0.0), (0.4 * size, 0.0), 0.3 * size),
    "own distance": lambda size: lambda x, y: jnp.maximum(jnp.abs(x), 0) + jnp.maximum(jnp.abs(y), 0) - size,
}


@pytest.fixture(params=[False, True], ids=["float32", "float64"])
def rounding(request):
    with jax.enable_x64(request.param):
        yield float(jnp.finfo(jnp.zeros(()).dtype).eps)


@pytest.mark.parametrize("name", GROWING)
def test_an_outline_grows_in_proportion_to_its_body_where_rays_meet_corners(name, rounding):
    def found(size):
        around = outline(GROWING[name](size), ORIGIN, 16, 3.0)
        return around.points, around.normals, around.spacing

    size = jnp.ones(())
    (points, normals, spacing), changes = jax.jit(lambda s: jax.jvp(found, (s,), (jnp.ones_like(s),)))(size)
    np.testing.assert_allclose(GROWING[name](size)(*points), 0, atol=8 * rounding)
    np.testing.assert_allclose(jnp.hypot(*normals), 1, rtol=8 * rounding)
    # Derivatives by the size are the points themselves; rounding of the cumulative length moves them along the outline.
    np.testing.assert_allclose(changes[0], points, atol=64 * rounding)
    np.testing.assert_allclose(changes[2], spacing, rtol=64 * rounding)


@pytest.mark.parametrize("corners", [SQUARE, SQUARE[::-1]], ids=["counterclockwise", "clockwise"])
def test_points_around_a_square_are_finite_for_any_number_of_them(corners, rounding):
    for count in (16, 20, 24, 32, 40, 100):
        x, y = outline(polygon(corners), ORIGIN, count, 3.0).points
        np.testing.assert_allclose(jnp.maximum(jnp.abs(x), jnp.abs(y)), 0.5, atol=4 * rounding)


def test_a_flow_around_a_polygon_is_that_around_the_same_box_in_single_precision():
    def drag(body):
        simulation = flow.system(
            axes={
                "x": {"cells": 16, "length": 3.0, "periodic": True},
                "y": {"cells": 16, "to": 3.0, "lower": "wall", "upper": "wall"},
            },
            viscosity=0.1,
            force={"x": 1},
            obstacles={"body": {"position": [1.5, 1.5], **body}},
            parameters={"time_step": 0.01},
        )
        return float(simkit.run(simulation, steps=2, every=2)["body.drag"][-1])

    # The normal of a point at a corner is that of one of its sides.
    square = drag({"shape": "polygon", "corners": SQUARE.tolist()})
    assert square == pytest.approx(drag({"shape": "box", "half_lengths": [0.5, 0.5]}), rel=0.02)


def test_a_distance_without_slope_on_the_surface_is_refused_by_name():
    with pytest.raises(UserError, match="has the slope zero on its surface, so that its outline is not a number"):
        check_outline(lambda x, y: (x**2 + y**2 - 0.25) ** 3, (0.0, 0.0), 2.0)
    check_outline(lambda x, y: x**2 + y**2 - 0.25, (0.0, 0.0), 2.0)


# Symmetric about the x axis, and the cells per unit of length.
SYMMETRIC = (
    ({"shape": "box", "half_lengths": [0.5, 0.5]}, 4),
    ({"shape": "box", "half_lengths": [0.6, 0.4]}, 11),
    ({"shape": "box", "half_lengths": [0.5, 0.5], "angle": "pi/4"}, 8),
    ({"shape": "box", "half_lengths": [0.5, 0.5], "rounding": 0.15}, 8),
    ({"shape": "polygon", "corners": [[-0.6, 0], [0.6, -0.7], [0.6, 0.7]]}, 7),
    ({"shape": "airfoil", "digits": "0030", "chord": 1.5}, 20),
    ({"shape": "capsule", "radius": 0.4, "half_length": 0.3}, 5),
    ({"shape": "ellipse", "half_axes": [0.6, 0.4]}, 12),
    ({"distance": "abs(x) + abs(y) - 0.6"}, 9),
)


@pytest.mark.parametrize(("obstacle", "cells"), SYMMETRIC)
def test_a_symmetric_body_in_a_symmetric_stream_has_no_lift(obstacle, cells):
    with jax.enable_x64(True):
        simulation = flow.system(
            axes={
                "x": {"cells": 5 * cells, "from": -2, "to": 3, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
                "y": {"cells": 4 * cells, "from": -2, "to": 2, "lower": "wall", "upper": "wall"},
            },
            viscosity=0.1,
            implicit=[],
            initial={"u": 1},
            largest_speed=2,
            obstacles={"body": {"position": [0, 0], **obstacle}},
            parameters={"time_step": min(0.03, 2 / cells**2)},
        )
        last = jax.jit(trajectory(simulation, 20, 20))(simulation.params, jax.random.key(0))[2]
        assert abs(last["body.lift"][-1]) < 1e-6 * last["body.drag"][-1]
