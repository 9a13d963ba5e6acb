"""User-defined loads act on every member of an ensemble as on a single scene."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.rigid.algebra.vector import Vector, norm, zeros
from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.free import Free
from simkit.rigid.joints.joint import attachment, hinge
from simkit.rigid.joints.loads import damper, motor, servo, speed_motor, spring, torsion_damper, torsion_spring
from simkit.rigid.loads import applied, gravity
from simkit.rigid.scene import Load, Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")
PARAMS = {"weights": [0.5, 0.7, 0.3], "anchor": [0.1, 0.05, 0.0], "gravity": 9.81, "time_step": 0.005}


def line(params):
    return attachment(0, 1, anchor=params["anchor"], base=jnp.roll(params["anchor"], 1))


def pin(params):
    return hinge(0, 1, anchor=params["anchor"], base=(0, 0, 0), axis=jnp.array([0.0, 1.0, 0.0]) + params["anchor"])


def most(params):
    return jnp.max(params["weights"])


def all_together(params):
    return jnp.prod(params["weights"]) ** 0.5


def course(time, params):
    return jnp.sum(params["weights"] * jnp.sin(params["weights"] * time)) + jnp.interp(
        time, jnp.array([0.0, 0.02, 0.04]), params["weights"]
    )


def between(motion, bodies, time, params):
    apart = motion.position[1] - motion.position[0]
    pull = jnp.linalg.norm(params["weights"]) * (1 - 0.5 / norm(apart)) * apart
    gust = jnp.array([1.0, 2.0]) * course(time, params)
    return Wrench(force=jnp.array([1.0, -1.0]) * pull + Vector(gust, *jnp.zeros((2, 2))), torque=zeros(jnp.zeros(2)))


def stored(motion, bodies, params):
    return most(params) * norm(motion.position[1] - motion.position[0]) ** 2


LOADS = {
    "Load": Load(wrench=between, energy=stored),
    "applied": applied(between),
    "spring": spring(line, most, lambda params: params["weights"][2] / 10),
    "damper": damper(line, all_together),
    "torsion_spring": torsion_spring(pin, all_together, lambda params: jnp.min(params["weights"]) / 10),
    "torsion_damper": torsion_damper(pin, most),
    "motor": motor(pin, course),
    "speed_motor": speed_motor(pin, course, most),
    "servo": servo(pin, course, all_together, most),
}


def scene(load):
    def start(params, bodies, key):
        places = Vector(jnp.array([0.0, 0.9]), jnp.array([0.0, 0.2]), jnp.array([1.0, 1.1]))
        moves = jnp.array([0.5, -0.3])
        return motion_of(bodies, places, velocity=Vector(moves, -moves, moves), angular_velocity=Vector(*[moves] * 3))

    def measures(motion, bodies, time, params):
        return {"x": motion.position.x[0], "spin": motion.angular_momentum.y[0]}

    return simulate(
        Scene(
            params={name: jnp.asarray(value) for name, value in PARAMS.items()},
            bodies=lambda params: repeat(box(1.0, (0.2, 0.3, 0.4)), 2),
            start=start,
            dynamics=Free(),
            loads=(gravity(), load),
            measures=measures,
        )
    )


@pytest.mark.parametrize("name", LOADS)
def test_members_equal_single_scenes(name):
    simulation = scene(LOADS[name])
    # As many members as an array has entries: the two would go together without an error.
    weights = jnp.array([[0.5, 0.7, 0.3], [2.0, 1.0, 0.4], [0.1, 0.2, 0.9]])
    keys = jax.random.split(jax.random.key(0), 3)
    params = simulation.params | {"weights": weights}
    together = trajectory(ensemble(simulation, ["weights"]), 10, 10)(params, keys)[2]
    alone = jax.jit(lambda params, key: trajectory(simulation, 10, 10)(params, key)[2])
    for member in range(3):
        single = alone(simulation.params | {"weights": weights[member]}, keys[member])
        for quantity, values in single.items():
            # Ten steps, which vectorized code may round in another way.
            np.testing.assert_allclose(
                together[quantity][:, member], values, rtol=1e-12, atol=1e-13, err_msg=f"{quantity}, {member}"
            )


def test_a_shared_array_is_not_split_over_members():
    simulation = scene(LOADS["motor"])
    single = trajectory(simulation, 10, 10)(simulation.params, jax.random.key(0))[2]
    # The gravity of each member is its own, the array is that of all.
    for count in (2, 3):
        params = simulation.params | {"gravity": jnp.full(count, PARAMS["gravity"])}
        keys = jax.random.split(jax.random.key(0), count)
        together = trajectory(ensemble(simulation, ["gravity"]), 10, 10)(params, keys)[2]
        np.testing.assert_allclose(together["spin"], np.stack([single["spin"]] * count, 1), rtol=1e-12)
