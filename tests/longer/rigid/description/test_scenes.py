"""Scenes of rigid bodies as data: places, names, held bodies, derivatives and mistakes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import rigid
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.rigid.algebra.vector import stacked
from tests.rigid.description.test_scenes import BALL, started

pytestmark = pytest.mark.usefixtures("x64")


def test_copies_are_placed_in_rows_by_their_number_and_at_random_without_overlap():
    gaps = {"gap": 2.0, "time_step": 0.1}
    _, row = started({**BALL, "count": 3, "position": ["index**2", 0, "gap"]}, parameters=gaps)
    assert stacked(row.position).tolist() == [[0, 0, 2], [1, 0, 2], [4, 0, 2]]
    wall = {"counts": [2, 1, 3], "spacing": [0.5, 0, 0.3]}
    _, grid = started({**BALL, "grid": wall, "position": ["layer", 0, 1], "velocity": [0, "row", 0]})
    assert np.allclose(grid.position.x, [0, 0.5, 1, 1.5, 2, 2.5]) and np.allclose(grid.position.z[::2], [1, 1.3, 1.6])
    assert grid.velocity.y.tolist() == [0, 1] * 3
    region = {"from": [0, 0, 0], "to": ["side", 1, 1]}
    small = {**BALL, "name": "", "radius": "0.05 + 0.001*index", "count": 30, "random": region}
    params = {"side": 1.0, "time_step": 0.1}
    key = jax.random.key(0)
    scene, motion = started(small, {**BALL, "random": region}, parameters=params)
    place, radius = stacked(motion.position), np.append(0.05 + 0.001 * np.arange(30), 0.1)
    apart = np.linalg.norm(place[:, None] - place, axis=2) + np.eye(31)
    assert (apart > radius[:, None] + radius).all() and (place > radius[:, None]).all()
    assert (place < 1 - radius[:, None]).all()
    slope = jax.jit(jax.jacfwd(lambda side: scene.init({**scene.params, "side": side}, key).motion.position.x))
    # Places move with the box, between its walls.
    assert np.allclose(slope(jnp.array(1.0)), (motion.position.x - radius) / (1 - 2 * radius))
    with pytest.raises(UserError, match=r"bodies\[0\]\.random leaves no room for so many bodies"):
        started({**small, "count": 1000}, parameters=params)


def test_a_held_ball_turns_another_back_and_keeps_its_own_velocity():
    scene = rigid.system(
        bodies=[
            {"shape": "sphere", "name": "wall", "radius": 0.1, "motion": "held", "velocity": ["push", 0, 0]},
            {**BALL, "position": [0.3, 0, 0], "velocity": [-1, 0, 0], "restitution": 0.5},
        ],
        gravity=[0, "pull", 0],
        method="impulses",
        measured=["wall", "ball"],
        parameters={"push": 0.2, "pull": 0.0, "time_step": 0.01},
    )
    last = jax.jit(trajectory(scene, 20, 20))(scene.params, jax.random.key(0))[2]
    assert np.isclose(last["ball.vx"][-1], 0.2 + 0.5 * 1.2, atol=1e-12)
    assert last["wall.vx"][-1] == 0.2 and np.isclose(last["wall.x"][-1], 0.04, atol=1e-15)
    # Energy and momentum are those of the free ball.
    assert np.isclose(last["energy"][-1], last["ball.vx"][-1] ** 2 / 2) and last["momentum"][0] == 1


def test_the_time_of_the_second_impact_and_its_derivative_are_those_of_the_formula():
    ground = {"shape": "plane", "name": "ground", "restitution": 0.8}
    scene = {
        "bodies": [ground, {**BALL, "position": [0, 0, "height + 0.1"]}],
        "gravity": 10.0,
        "impacts": {"bounce": {"first": "ball", "second": "ground", "number": 2}},
        "parameters": {"height": 1.0, "time_step": 0.01},
    }
    with pytest.raises(UserError, match="does not support times of impacts: choose the method events"):
        rigid.system(**scene, method="impulses")
    with pytest.raises(UserError, match="contact forces: choose the method impulses"):
        rigid.system(**scene | {"forces": {"all": {"first": "ball"}}}, method="events")
    simulation = rigid.system(**scene, method="events")

    def numbers(height):
        params = {**simulation.params, "height": height}
        return trajectory(simulation, 150, 75)(params, jax.random.key(0))[2]

    seen, slope = jax.jit(lambda h: jax.jvp(numbers, (h,), (jnp.ones_like(h),)))(simulation.params["height"])
    assert np.isnan(seen["bounce.time"][1]) and seen["bounce.impacts"].tolist() == [0, 1, 2]
    # A fall, and a flight of 2 e times as long.
    expected = (1 + 2 * 0.8) * np.sqrt(2 / 10)
    np.testing.assert_allclose(
        [seen["bounce.time"][-1], slope["bounce.time"][-1]], [expected, expected / 2], rtol=1e-12
    )


def test_the_force_of_a_joint_is_that_of_a_pendulum_on_a_string_and_on_a_hinge():
    """``m (g cos q + l w^2)`` along a string, of a rod's hinge the same with l/2, and ``m g sin q / 4`` across."""
    mass, gravity, angle, rate = 2.0, 10.0, 0.4, 3.0
    along = np.array([-np.sin(angle), 0, -np.cos(angle)])
    thin = [mass / 12, mass / 12, 1e-3]
    rod = {"shape": "capsule", "name": "rod", "radius": 0.01, "length": 1.0, "mass": mass, "inertia": thin}
    turned = {"orientation": [0, angle, 0], "angular_velocity": [0, rate, 0]}
    moves = {axis: float(part) for axis, part in zip("xz", rate * np.array([along[2], -along[0]]), strict=True)}
    scene = rigid.system(
        bodies=[
            {**rod, **turned, "position": [*along / 2], "velocity": [moves["x"] / 2, 0, moves["z"] / 2]},
            {**BALL, "mass": mass, "position": [*along], "velocity": [moves["x"], 0, moves["z"]]},
        ],
        joints=[
            {"joint": "hinge", "name": "hinge", "first": "rod", "at": [0, 0, 0], "axis": [0, 1, 0]},
            {"joint": "distance", "name": "string", "first": "ball", "base": [0, 0, 0]},
        ],
        gravity="gravity",
        method="jointed",
        forces={"pull": {"joint": "string"}, "pivot": {"joint": "hinge"}},
        measured=["energy", "center_of_mass"],
        parameters={"gravity": gravity, "time_step": 0.001},
    )
    started = jax.jit(lambda params: scene.diagnose(scene.init(params, jax.random.key(0)), params))(scene.params)
    pull, pivot = (np.array([started[f"{name}.f{axis}"] for axis in "xyz"]) for name in ("pull", "pivot"))
    np.testing.assert_allclose(pull, -along * mass * (gravity * np.cos(angle) + rate**2), atol=1e-10)
    assert started["pull.force"] == pytest.approx(np.linalg.norm(pull))
    across = np.array([along[2], 0, -along[0]])
    np.testing.assert_allclose(-pivot @ along, mass * (gravity * np.cos(angle) + rate**2 / 2), rtol=1e-10)
    np.testing.assert_allclose(abs(pivot @ across), mass * gravity * np.sin(angle) / 4, rtol=1e-10)
    # Both have the same mass, and the center of the rod moves half as fast as the ball.
    energies = [started[f"energy.{kind}"] for kind in ("translation", "rotation", "potential")]
    height = -1.5 * np.cos(angle)
    expected = [mass * rate**2 * (1 + 1 / 4) / 2, mass / 12 * rate**2 / 2, mass * gravity * height]
    np.testing.assert_allclose(energies, expected, rtol=1e-12)
    np.testing.assert_allclose(started["energy"], sum(expected), rtol=1e-12)
    np.testing.assert_allclose(started["center_of_mass.z"], height / 2, rtol=1e-12)
    np.testing.assert_allclose(started["center_of_mass.vx"], 0.75 * moves["x"], rtol=1e-12)
