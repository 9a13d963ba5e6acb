"""Arguments, values and starts of rigid bodies that cannot be."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.estimation import beside_recording
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.rigid import (
    Compliant,
    Events,
    Impulses,
    Jointed,
    billiards_break,
    mjcf,
    steered_puck,
    system_identification,
)
from simkit.rigid.algebra import vector
from simkit.rigid.algebra.quaternion import quaternion
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import gravity
from simkit.rigid.planes import plane
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from simkit.rigid.systems.hard_impacts import bouncing_ball
from tests.tables import every

WRONG = [
    (Impulses, {"sweeps": 2.5}, "sweeps = 2.5 is not an integer of at least 1; write one"),
    (Impulses, {"impacts": "4"}, "impacts = '4' is not an integer of at least 0"),
    (Impulses, {"correction": True}, "correction = true is not a finite number; write one"),
    (Impulses, {"correction": 1.5}, "correction = 1.5 is "),
    (Events, {"reach": 0}, "reach = 0 is "),
    (Events, {"impacts": True}, "impacts = true is not an integer of at least 1"),
    (Events, {"reach": "1"}, "reach = '1' is no number; write one"),
    (Compliant, {"substeps": 0}, "substeps = 0 is not an integer of at least 1"),
    (Compliant, {"creep_speed": float("nan")}, "creep_speed = nan is not a finite number"),
    (Jointed, {"iterations": 2.5}, "iterations = 2.5 is not an integer of at least 1"),
    (Jointed, {"order": [2]}, "order = [2] is not available; choose 2 or 4"),
    (billiards_break, {"rows": None}, "rows = None is not an integer from 1 to 5"),
    (steered_puck, {"knots": 1}, "knots = 1 is not an integer from 2 to 1000"),
    (system_identification, {"true_restitution": 1.5}, "true_restitution = 1.5 is above its upper bound 1"),
    (system_identification, {"true_mass": 0}, "true_mass = 0 is below its lower bound 0.001"),
    (system_identification, {"true_mas": 3.0}, "true_mas is not a known key; did you mean 'true_mass'?"),
    (mjcf, {"model": "brax:ant.xml", "substeps": 0.5}, "substeps = 0.5 is not an integer of at least 1"),
]


@every(("make", "given", "message"), WRONG, ids=[message.split(" is ")[0] for *_, message in WRONG])
def test_a_wrong_argument_is_refused_by_name_with_the_allowed_range(make, given, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}") as refused:
        make(**given)
    assert "\n" not in str(refused.value)


def test_numbers_of_numpy_are_accepted():
    assert Impulses(sweeps=np.int64(4), correction=np.float32(0.5)).sweeps == 4
    assert Events(reach=np.float64(2.0)).reach == 2


# What is out of range of each; its time step is added for all.
OUT_OF_RANGE = {
    billiards_break: {"cloth_friction": -0.1, "restitution": 1.5, "length": 0.0},
    bouncing_ball: {
        "restitution": 1.5,
        "mass": -1.0,
        "radius": -0.1,
        "friction": -0.1,
        "launch_height": -1.0,
        "launch_scatter": -0.1,
        "gravity": 0.0,
    },
    steered_puck: {"start_gap": -0.1, "velocity_weight": -1.0},
    system_identification: {"mass": 0.0, "restitution": -0.5, "noise": 0.0},
}


@every("make", OUT_OF_RANGE)
def test_a_parameter_out_of_its_range_is_named_with_its_value(make):
    simulation = make()
    for name, value in (OUT_OF_RANGE[make] | {"time_step": -0.01}).items():
        with pytest.raises(
            UserError,
            match=rf"^{name} = {value:g} is (not positive|negative|above its upper bound|below its lower bound)",
        ):
            simulation.check_values(simulation.params | {name: jnp.asarray(value)}, jax.random.key(0))
    with pytest.raises(UserError, match=r"^time_step = 0 is not positive; choose a value above 0$"):
        simulation.check_values(simulation.params | {"time_step": jnp.asarray(0.0)}, jax.random.key(0))


@every("make", OUT_OF_RANGE)
def test_a_parameter_that_is_no_number_is_refused_also_without_bounds(make):
    simulation = make()
    for name, value in simulation.params.items():
        with pytest.raises(UserError, match=rf"^{name} = nan is not a number; give one"):
            simulation.check_values(simulation.params | {name: jnp.full_like(value, jnp.nan)}, jax.random.key(0))


def test_bounds_are_checked_before_the_check_of_the_simulation():
    asked = []
    simulation = Simulation(
        init=lambda params, key: params["x"],
        step=lambda state, params: state,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {},
        params={"x": Parameter(1.0, POSITIVE)},
        check=lambda params, key: asked.append(float(params["x"])),
    )
    simulation.check_values(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match="x = -1"):
        simulation.check_values({"x": jnp.asarray(-1.0)}, jax.random.key(0))
    assert asked == [1.0]


SEEDS = range(8)


def scattered():
    """Return a ball at a random height of a few radii above the origin, and another at rest there."""

    def start(params, bodies, key):
        height = params["height"] * jax.random.uniform(key)
        nothing = jnp.zeros(2)
        return motion_of(bodies, Vector(nothing, nothing, jnp.stack([jnp.zeros(()), height])))

    names = {"height": 0.4, "radius": 0.1, "time_step": 0.01}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in names.items()},
            bodies=lambda params: repeat(sphere(1.0, params["radius"]), 2),
            start=start,
            dynamics=Impulses(),
        )
    )


def refused(check, *arguments):
    try:
        check(*arguments)
    except UserError as error:
        assert "overlap by" in str(error)
        return True
    return False


def test_a_start_is_refused_for_its_own_key():
    simulation = scattered()
    for seed in SEEDS:
        key = jax.random.key(seed)
        height = float(simulation.init(simulation.params, key).motion.position.z[1])
        assert refused(simulation.check, simulation.params, key) == (height < 0.2)


def test_both_sides_of_a_recording_are_checked():
    pair = beside_recording(
        scattered(), {"radius": -0.1}, lambda state, params: {"z": state.motion.position.z}, every=1, noise=0.1
    )
    with pytest.raises(UserError, match=r"body 0 \(sphere\): size = -0.1 is not positive"):
        pair.check(pair.params | {"height": jnp.asarray(50.0)}, jax.random.key(0))


@every(
    "wrong, message",
    [
        (lambda: plane((0, 0, 2)), "plane 0: its normal has length 2"),
        (lambda: plane((0, 0, 1), float("nan")), "plane 0: offset = nan is not a finite number"),
        (lambda: plane((0, 0, 1), friction=-1.0), "plane 0: friction = -1 is negative"),
        (lambda: plane((0, 0, 1), restitution=1.5), r"plane 0: restitution = 1.5 is above its upper bound 1"),
    ],
)
def test_planes_that_cannot_exist_are_refused(wrong, message):
    scene = Scene(
        params={"time_step": jnp.asarray(0.01)},
        bodies=lambda params: repeat(sphere(1.0, 0.1), 1),
        start=lambda params, bodies, key: motion_of(bodies, Vector(*jnp.ones((3, 1)))),
        dynamics=Impulses(),
        planes=lambda params: wrong(),
    )
    simulation = simulate(scene)
    with pytest.raises(UserError, match=message):
        simulation.check(simulation.params, jax.random.key(0))


def test_a_scene_without_a_time_step_is_refused():
    with pytest.raises(UserError, match="no parameter 'time_step'"):
        simulate(dataclasses.replace(_bare(), params={}))


def _bare():
    return Scene(
        params={"time_step": jnp.asarray(0.01)},
        bodies=lambda params: repeat(sphere(1.0, 0.1), 1),
        start=lambda params, bodies, key: motion_of(bodies, Vector(*jnp.ones((3, 1)))),
        dynamics=Impulses(),
    )


def turned(parts):
    """Return a free block at an orientation."""

    def start(params, bodies, key):
        return motion_of(bodies, Vector(*jnp.zeros((3, 2))), quaternion(jnp.asarray([(1, 0, 0, 0), parts], float)))

    return simulate(
        Scene(
            params={"time_step": jnp.asarray(0.01)},
            bodies=lambda params: repeat(box(1.0, (0.2, 0.3, 0.4)), 2),
            start=start,
            dynamics=Free(),
        )
    )


@every(("parts", "length"), [((1, 1, 0, 0), "1.41421"), ((2, 0, 0, 0), "2"), ((0, 0, 0, 0), "0")])
def test_an_orientation_that_is_no_unit_quaternion_is_refused(parts, length):
    with pytest.raises(UserError, match=f"body 1 has an orientation of length {length} at the start; divide it by"):
        simkit.run(turned(parts), steps=2)


def test_derivatives_by_the_entries_of_a_quaternion_are_those_on_the_sphere(x64):
    """Of the angular velocity that follows from an orientation, given through `motion_of` or as part of a `Motion`."""
    q = np.array([0.5, -0.1, 0.7, np.sqrt(0.25)])
    q /= np.linalg.norm(q)

    def start(params, bodies, key):
        zero = Vector(*jnp.zeros((3, 1)))
        turned = quaternion(params["q"][None])
        spun = motion_of(bodies, zero, turned, angular_velocity=Vector(*jnp.ones((3, 1))))
        return dataclasses.replace(spun, orientation=turned)

    simulation = simulate(
        Scene(
            params={"q": jnp.asarray(q), "time_step": jnp.asarray(0.01)},
            bodies=lambda params: repeat(box(1.0, (0.2, 0.3, 0.4)), 1),
            start=start,
            dynamics=Free(),
        )
    )

    def end(q):
        state = simulation.init(simulation.params | {"q": q}, jax.random.key(0))
        return vector.stacked(state.motion.angular_momentum)[0], vector.stacked(
            angular_velocity(dataclasses.replace(state.motion, angular_momentum=Vector(*jnp.ones((3, 1)))), box_of_one)
        )[0]

    box_of_one = repeat(box(1.0, (0.2, 0.3, 0.4)), 1)
    step, slopes = 1e-6, jax.jacfwd(end)(jnp.asarray(q))
    for place, slope in enumerate(slopes):
        np.testing.assert_allclose(slope @ q, 0, atol=1e-12)
        for entry in range(4):
            ends = [
                end(jnp.asarray(p / np.linalg.norm(p)))[place]
                for p in (q + step * np.eye(4)[entry], q - step * np.eye(4)[entry])
            ]
            np.testing.assert_allclose(slope[:, entry], (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def test_a_parameter_that_stands_for_one_number_is_not_an_array():
    for count in (1, 3):
        simulation = simulate(
            Scene(
                params={"gravity": [0.0, 0.0, 9.81], "time_step": 0.1},
                bodies=lambda params, count=count: repeat(sphere(1.0, 0.1), count),
                start=lambda params, bodies, key, count=count: motion_of(bodies, Vector(*jnp.zeros((3, count)))),
                dynamics=Free(),
                loads=(gravity(),),
            )
        )
        with pytest.raises(UserError, match=r"the parameter 'gravity' that .* reads has shape \(3,\)"):
            simkit.run(simulation, steps=1)
    with pytest.raises(UserError, match=r"the parameter 'stiffness' that Compliant reads has shape \(2,\)"):
        simulate(
            dataclasses.replace(
                _bare(), params={"stiffness": [1e4, 2e4], "dissipation": 0.0, "time_step": 0.01}, dynamics=Compliant()
            )
        )
    for make in (sphere, lambda *size, **rough: box(1.0, (0.1, 0.1, 0.1), **rough)):
        with pytest.raises(UserError, match=r"friction has shape \(3,\); give one number"):
            make(1.0, 0.1, friction=jnp.ones(3))
    with pytest.raises(UserError, match=r"plane: friction has shape \(2,\)"):
        plane((0, 0, 1), friction=[0.1, 0.2])
