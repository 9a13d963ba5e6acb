"""The pressure on the surface of obstacles, from the fluid beyond and the balance of momentum at the wall."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)
WALLS = {"cells": 24, "length": 3.0, "lower": "wall", "upper": "wall"}


def body_in_a_gradient(method="immersed_boundary", **body):
    ellipse = {"shape": "ellipse", "half_axes": ["a", 0.4], "angle": "tilt", "position": [1.5, 1.6]}
    points = {"pressure_at": {"right": "angle", "above": "pi/2"}}
    return flow.system(
        axes={"x": WALLS, "y": WALLS},
        viscosity=0.1,
        force={"x": "gx", "y": "gy"},
        obstacle_method=method,
        obstacles={"body": (body if "shape" in body else ellipse | body) | ({} if "pressure_at" in body else points)},
        parameters={"gx": 1.0, "gy": -2.0, "a": 0.6, "tilt": 0.0, "angle": 0.0, "time_step": 0.01},
    )


def difference(simulation):
    """The pressure on the right minus that above, in a pressure field with the gradient (gx, gy)."""

    def of(params):
        x, y = (simulation.coordinates[axis] for axis in "xy")
        pressure = params["gx"] * x[:, None] + params["gy"] * y
        state = dataclasses.replace(simulation.init(params, KEY), pressure=pressure)
        found = simulation.diagnose(state, params)
        return found["body.pressure_right"] - found["body.pressure_above"]

    return of


@pytest.mark.parametrize("moves", [False, True], ids=["at rest", "moving"])
@pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])
def test_pressure_on_the_surface_is_that_of_the_fluid_beyond(method, moves):
    simulation = body_in_a_gradient(method, **({"position": ["1.5 + 0*time", 1.6]} if moves else {}))
    simulation.check(simulation.params, KEY)
    found = jax.jit(difference(simulation))
    assert float(found(simulation.params)) == pytest.approx(1.0 * 0.6 - (-2.0) * 0.4, rel=1e-10)
    # Upright it is 0.4 wide and 0.6 high.
    turned = simulation.with_params(tilt=np.pi / 2, angle=np.pi).params
    assert float(found(turned)) == pytest.approx(-0.4 - (-2.0) * 0.6, rel=1e-10)


def at_faces(velocity):
    """The components of a velocity on their faces."""
    faces = np.linspace(0, 3, 25)
    centers = (faces[1:] + faces[:-1]) / 2
    return tuple(
        jnp.asarray(velocity(*np.meshgrid(x, y, indexing="ij"))[i])
        for i, (x, y) in enumerate(((faces, centers), (centers, faces)))
    )


def test_the_slope_at_the_wall_is_that_of_surfaces_that_turn_and_that_accelerate():
    circle = {"shape": "circle", "radius": 0.5, "pressure_at": {"right": 0}}
    simulation = body_in_a_gradient("direct_forcing", **circle, position=[1.5, 1.5], spin=2.0)
    params = simulation.params | {"gx": jnp.zeros(()), "gy": jnp.zeros(())}
    x, y = (simulation.coordinates[axis] for axis in "xy")
    square = (x[:, None] - 1.5) ** 2 + (y - 1.5) ** 2
    state = dataclasses.replace(
        simulation.init(params, KEY),
        velocity=at_faces(lambda x, y: np.array([1.5 - y, x - 1.5]) * 0.5 / ((x - 1.5) ** 2 + (y - 1.5) ** 2)),
        pressure=-0.125 / square,
    )
    # Around a cylinder that turns in unbounded fluid it is -(spin R^2/r)^2/2; here with 4 cells per radius -0.518, and
    # without the slope -0.430.
    assert float(simulation.diagnose(state, params)["body.pressure_right"]) == pytest.approx(-0.5, rel=0.05)
    moving = body_in_a_gradient(**circle, position=["1.4 + 0.1*(time + 1)**2", 1.5])
    state = dataclasses.replace(
        moving.init(params, KEY),
        velocity=at_faces(lambda x, y: np.array([0.2 + 0 * x, 0 * x])),
        pressure=jnp.broadcast_to(-0.2 * x[:, None], square.shape),
    )
    assert float(moving.diagnose(state, params)["body.pressure_right"]) == pytest.approx(-0.2 * 2.0, rel=1e-9)


def test_derivatives_with_respect_to_size_and_position_on_the_surface():
    simulation = body_in_a_gradient("direct_forcing")
    slopes = jax.jit(jax.grad(difference(simulation)))(simulation.params)
    # By the half axis the point moves along x, and by the angle along y, by 0.6.
    assert float(slopes["a"]) == pytest.approx(1.0, rel=1e-8)
    assert float(slopes["angle"]) == pytest.approx(-2.0 * 0.6, rel=1e-8)
    assert float(slopes["gx"]) == pytest.approx(0.6, rel=1e-8)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"pressure_at": {"front": "x"}}, "obstacles.body.pressure_at.front: column 1 of '>>>x': 'x' is not known"),
        ({"pressure_at": {"a b": 0}}, "obstacles.body.pressure_at: 'a b' is not a name"),
        (
            {"shape": "polygon", "corners": [[0.2, -0.4], [0.8, -0.4], [0.8, 0.4]], "position": [1.5, 1.6]},
            "obstacles.body.pressure_at needs a position in the body from which every ray leaves it once; choose one",
        ),
    ],
    ids=["a formula", "a name", "a position outside"],
)
def test_invalid_points_are_refused(body, message):
    with pytest.raises(UserError) as caught:
        simulation = body_in_a_gradient("direct_forcing", **body)
        simulation.check(simulation.params, KEY)
    assert message in str(caught.value) and "\n" not in str(caught.value)
