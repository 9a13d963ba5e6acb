"""Loads, means and pressures of flows around bodies, and how bodies may lie."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import MESSAGES, Status, failed
from simkit.errors import UserError
from tests.differences import central_difference
from tests.tables import every, lacking, refusal

pytestmark = pytest.mark.usefixtures("x64")


RADIUS = 0.3
METHODS = ("immersed_boundary", "direct_forcing")
VOLUME = math.pi * RADIUS**2
OUTSIDE = f"where((x - 0.02)**2 + (y - 0.07)**2 < {RADIUS}**2, 0, push)"


def last(method, force, steps, sides):
    """The diagnostics after some steps of a flow past a rod, which starts at rest."""
    simulation = flow.system(
        axes={
            "x": {"cells": 24, "from": -1, "to": 1, **sides},
            "y": {"cells": 24, "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        viscosity=0.2,
        force=force,
        obstacles={"rod": {"shape": "circle", "radius": RADIUS, "position": [0.02, 0.07]}},
        obstacle_method=method,
        largest_speed=1.0,
        parameters={"push": 1.0, "time_step": 0.01},
    )
    found = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))[2]
    return {name: float(found[name][-1]) for name in found if np.ndim(found[name]) == 1}


@pytest.mark.parametrize("method", METHODS)
def test_a_body_in_fluid_at_rest_has_no_load_and_its_buoyancy_where_the_force_is_outside(method):
    walls = {"lower": "wall", "upper": "wall"}
    # Direct forcing leaves 1 % of the pressure of each stage.
    assert abs(last(method, {"y": "push"}, 20, walls)["rod.lift"]) < 1e-3
    # Archimedes; the volume of cells whose centers are outside is right to 2 %.
    assert last(method, {"y": OUTSIDE}, 20, walls)["rod.lift"] == pytest.approx(-VOLUME, rel=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_loads_and_friction_balance_the_force_on_the_whole_domain(method):
    whole, outside = (last(method, {"x": force}, 800, {"periodic": True}) for force in ("push", OUTSIDE))
    for found in (whole, outside):
        friction = 2 * (found["y_lower.shear_x"] + found["y_upper.shear_x"])
        assert found["rod.drag"] + friction == pytest.approx(4 * found["drive"], rel=2e-4)
    # The flow around the body is the same in both: its load differs by the force inside.
    assert whole["rod.drag"] - outside["rod.drag"] == pytest.approx(VOLUME, rel=0.03)


POST = 0.4
KEY = jax.random.key(0)


def periodic_stream(cells=24, *, scalar="1", **body):
    """A round body in a stream of velocity y^2, periodic in a square of side 3, and a scalar."""
    return flow.system(
        axes={
            "x": {"cells": cells, "from": -1.5, "to": 1.5, "periodic": True},
            "y": {"cells": cells, "from": -1.5, "to": 1.5, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=0.05,
        initial={"u": "y**2"},
        scalars={"dye": {"diffusivity": 0.1, "initial": scalar}},
        obstacles={"post": {"shape": "circle", "radius": POST, "position": ["place", 0], **body}},
        obstacle_method="direct_forcing",
        parameters={"place": 0.3, "time_step": 0.01},
    )


def at_start(simulation, **params):
    """The diagnostics of the start."""
    params = simulation.params | params
    return jax.jit(lambda params: simulation.diagnose(simulation.init(params, KEY), params))(params)


def test_mean_and_variance_are_those_outside_the_disk():
    found = at_start(periodic_stream(48, scalar="x"))
    # Moments of a square of side 3 less those of the disk about x = 0.3.
    disk = math.pi * POST**2
    area = 9 - disk
    mean = -disk * 0.3 / area
    square = (9 * 9 / 12 - disk * (0.3**2 + POST**2 / 4)) / area
    # The area of the body of 13 cells is right to 0.4 %, which is 0.0001 in the mean; cells give h^2/12 = 3e-4.
    assert found["dye.mean"] == pytest.approx(mean, abs=1e-4)
    assert found["dye.variance"] == pytest.approx(square - mean**2, abs=6e-4)


def test_kinetic_energy_is_that_of_the_fluid_and_the_mean_velocity_that_of_the_domain():
    found = at_start(periodic_stream(48))
    # Means of y^4 and y^2 over the square, and over the disk about y = 0.
    disk = math.pi * POST**2
    energy = (9 * 1.5**4 / 5 - disk * POST**4 / 8) / (9 - disk) / 2
    # Cells and the area of the body are right to 0.1 % of it.
    assert found["kinetic_energy"] == pytest.approx(energy, rel=2e-3)
    assert found["mean_u"] == pytest.approx(1.5**2 / 3, rel=1e-3)


@pytest.mark.parametrize("name", ["dye.mean", "dye.variance", "kinetic_energy"])
def test_means_are_differentiable_by_the_position_of_a_body(name):
    simulation = periodic_stream(scalar="x*y + y**2 + x")

    def measured(params):
        return at_start(simulation, **params)[name]

    derivative = jax.grad(measured)(simulation.params)["place"]
    assert abs(derivative) > 1e-4
    difference = central_difference(measured, simulation.params, ["place"], 1e-5)["place"]
    np.testing.assert_allclose(derivative, difference, rtol=1e-5)


def test_the_divergence_that_fills_a_growing_body_is_no_error():
    sides = {"lower": "free_slip", "upper": "free_slip"}
    growing = flow.system(
        axes={
            "x": {"cells": 16, "from": -1.5, "to": 1.5, "lower": "free_slip", "upper": "pressure"},
            "y": {"cells": 16, "from": -1.5, "to": 1.5, **sides},
        },
        viscosity=0.05,
        obstacles={"ball": {"shape": "circle", "radius": POST, "position": [0, 0], "size": "1 + 0.3*time"}},
        obstacle_method="direct_forcing",
        parameters={"time_step": 0.01},
    )

    @jax.jit
    def after_a_step(params):
        return growing.diagnose(growing.step(growing.init(params, KEY), params), params)

    assert after_a_step(growing.params)["divergence"] < 1e-12


def stream(radius=0.2, **more):
    return flow.system(
        axes={
            "x": {"cells": 24, "from": -2, "to": 4, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
            "y": {"cells": 20, "from": -2.5, "to": 2.5, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=0.1,
        initial={"u": 1},
        obstacles={"rod": {"shape": "circle", "radius": "radius", "position": [0, 0], **more}},
        obstacle_method="immersed_boundary",
        parameters={"radius": radius, "time_step": 0.02},
    )


def with_radius(simulation, radius):
    return {**simulation.params, "radius": jnp.asarray(radius, float)}


def drag(simulation, radius):
    run = jax.jit(trajectory(simulation, 20, 20))
    return float(run(with_radius(simulation, radius), KEY)[2]["rod.drag"][-1])


def test_a_body_larger_than_its_points_resolve_is_refused_with_their_number():
    simulation = stream(0.4)
    simulation.check(with_radius(simulation, 0.5), KEY)
    with pytest.raises(UserError, match=r"the 12 points .* are 2\.09 cells apart, .* set points = 21"):
        simulation.check(with_radius(simulation, 1.0), KEY)
    stream(0.4, points=21).check(with_radius(simulation, 1.0), KEY)


def test_a_number_of_points_that_is_accepted_gives_the_drag_of_many():
    radius = 1.0
    few, many = (stream(0.4, points=points) for points in (17, 60))
    few.check(with_radius(few, radius), KEY)
    assert drag(few, radius) == pytest.approx(drag(many, radius), rel=2e-3)
    with pytest.raises(UserError, match="set points = 21"):
        stream(0.4, points=12).check(with_radius(few, radius), KEY)
    assert drag(stream(0.4, points=8), radius) != pytest.approx(drag(many, radius), rel=2e-2)


def status_at(simulation, time=0.0, params=None):
    params = params or simulation.params
    shapes = jax.eval_shape(simulation.init, params, jax.eval_shape(jax.random.key, 0))
    state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return Status(int(simulation.status(dataclasses.replace(state, time=jnp.full_like(state.time, time)), params)))


def test_the_status_names_outlines_that_became_too_long():
    simulation = stream(0.4)
    assert status_at(simulation, params=with_radius(simulation, 0.7)) == Status.OK
    assert status_at(simulation, params=with_radius(simulation, 0.75)) == Status.OUTLINE_TOO_COARSE
    growing = stream(0.4, size="1 + time")
    assert status_at(growing, 0.7) == Status.OK
    assert status_at(growing, 0.9) == Status.OUTLINE_TOO_COARSE
    assert failed(np.asarray(Status.OUTLINE_TOO_COARSE))


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


SOLID = {"lower": "wall", "upper": "wall"}


def tank(obstacles, **more):
    return flow.system(
        axes={"x": {"cells": 16, "length": 1.0, **SOLID}, "y": {"cells": 24, "length": 1.5, **SOLID}},
        viscosity=0.05,
        obstacles=obstacles,
        parameters={"time_step": 0.002},
        **more,
    )


def ball(x, y, radius=0.2):
    return {"shape": "circle", "radius": radius, "position": [x, y]}


@pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])
@pytest.mark.parametrize("way", [1, -1])
def test_a_body_within_two_cells_of_a_wall_is_detected(method, way):
    # At the wall its nearest point, 0.55 away at the start; two cells are 0.125.
    simulation = tank({"ball": ball(0.5, f"0.75 + {way}*time")}, obstacle_method=method)
    assert status_at(simulation, 0.0) == status_at(simulation, 0.42) == Status.OK
    assert status_at(simulation, 0.43) == status_at(simulation, 2.0) == Status.BODY_TOO_NEAR
    assert "within two cells" in MESSAGES[Status.BODY_TOO_NEAR] and failed(np.asarray(Status.BODY_TOO_NEAR))


def test_bodies_within_two_cells_of_each_other_are_detected():
    # Along a line of cell centers, so that the gap is met: 1.05 - time - 0.3 - 2 * 0.1.
    bodies = {"still": ball(0.5, 0.3, 0.1), "falling": ball(0.5, "1.2 - time", 0.1)}
    simulation = tank(bodies, obstacle_method="direct_forcing")
    assert status_at(simulation, 0.5) == Status.OK
    assert status_at(simulation, 0.62) == Status.BODY_TOO_NEAR


def test_points_on_a_surface_in_space_are_refused():
    ball = {"shape": "sphere", "radius": 0.5, "position": [1.5, 1.5, 1.5], "pressure_at": {"front": 0}}
    with pytest.raises(UserError, match=r"obstacles.ball.pressure_at is for plane flows"):
        flow.system(axes={"x": WALLS, "y": WALLS, "z": WALLS}, viscosity=0.1, obstacles={"ball": ball})


@every(
    [
        ("x0", "obstacle 'rod' is outside the domain, or"),
        ("0.3 - hypot(x, y)", "obstacle 'rod' extends 1.07 beyond the side x = 0; leave at least two cells"),
    ]
)
def test_the_only_obstacle_is_named_where_its_place_is_refused(distance, message):
    walls = {"cells": 16, "length": 2.0, "lower": "wall", "upper": "wall"}

    def made():
        simulation = flow.system(
            axes={"x": walls, "y": walls},
            viscosity=0.1,
            obstacles={"rod": {"position": [1.0, 1.0], "distance": distance}},
            parameters={"x0": 0.5, "time_step": 0.01},
        )
        simulation.check_values(simulation.params, KEY)

    return lacking(refusal(UserError, made), message)
