"""Every kind of joint: its constraints, its conserved quantities, and the derivatives of its motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status, status_of
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.assemble import assemble
from simkit.rigid.joints.joint import ball, distance, hinge, slider, weld
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from tests.differences import central_difference
from tests.rigid.joints.scenes import at_rest, key, params_of

SIZES = ((0.2, 0.3, 1.0), (0.3, 0.2, 0.9), (0.25, 0.3, 0.8), (0.3, 0.3, 0.4), (0.2, 0.2, 0.6), (0.3, 0.4, 0.5))


def chain(time_step=2e-3, order=2):
    """Return six floating boxes, a joint of every kind between them, thrown into motion."""

    def joints(params):
        end, start = (0.1, 0.05, -0.5 * params["length"]), (0, 0.1, 0.45)
        return (
            hinge(0, 1, anchor=end, base=start, axis=(1.0, 1.0, 0.5)),
            ball(1, 2, anchor=end, base=start),
            slider(2, 3, anchor=end, base=start, axis=(0.0, 1.0, 1.0)),
            weld(3, 4, anchor=end, base=start),
            distance(4, 5, anchor=end, base=start, length=0.7 * params["length"]),
        )

    def start(params, bodies, key):
        rough = at_rest(bodies, [(0.03 * i, 0.02 * i * i, -1.0 * i) for i in range(6)])
        speeds = jnp.asarray(np.random.default_rng(3).normal(size=(6, 6)), params["length"].dtype)
        x, y, z, a, b, c = speeds * params["speed"]
        rough = motion_of(bodies, rough.position, rough.orientation, Vector(x, y, z), Vector(a, b, c))
        return assemble(rough, bodies, joints(params))

    return simulate(
        Scene(
            params=params_of(length=1.0, speed=1.0, mass=1.5, time_step=time_step),
            bodies=lambda params: gather([box(params["mass"], size) for size in SIZES]),
            start=start,
            dynamics=Jointed(order=order),
            joints=joints,
            measures=lambda motion, bodies, time, params: {"x": motion.position.x[5], "z": motion.position.z[0]},
        )
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_joints_of_every_kind_hold_and_conserve_momenta_and_energy(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = chain()
        simulation.check(simulation.params, jax.random.key(0))
        end, _, found = jax.jit(trajectory(simulation, 500, 10))(simulation.params, key())
        eps = float(jnp.finfo(precision).eps)
        # Coordinates reach 5 m and speeds 5 m/s; some digits go in chains of six.
        assert found["joint_error"].max() < 50 * eps and found["joint_tilt"].max() < 50 * eps
        assert found["joint_error_rate"].max() < 100 * eps and found["joint_tilt_rate"].max() < 100 * eps
        for name in ("momentum", "angular_momentum"):
            # 500 steps of a few roundings each.
            np.testing.assert_allclose(found[name], found[name][0], rtol=500 * eps, atol=500 * eps)
        # The error of second order, (omega dt)^2 / 12 at 10 rad/s and 2 ms, and the loss of the projection none.
        np.testing.assert_allclose(found["energy"], found["energy"][0], rtol=1e-4)
        assert status_of(simulation)(end, simulation.params) == Status.OK


def hanging(time_step=5e-3):
    """Return three boxes, of which the first slides on a rail in space; a ball and a rod carry the others."""

    def joints(params):
        return (
            slider(0, anchor=(0, 0, 0), base=(0, 0, 0), axis=(1.0, 0.0, 0.5)),
            ball(1, 0, anchor=(0, 0, 0.5), base=(0, 0, -0.2)),
            distance(2, 1, anchor=(0, 0, 0), base=(0, 0, -0.5), length=params["length"]),
        )

    def start(params, bodies, key):
        none, bottom = jnp.zeros(()), -1.2 - params["length"]
        place = Vector(jnp.zeros(3), jnp.zeros(3), jnp.stack([none, none - 0.7, bottom]))
        aside = Vector(jnp.zeros(3), jnp.stack([none, none, params["speed"]]), jnp.zeros(3))
        return motion_of(bodies, place, velocity=aside)

    return simulate(
        Scene(
            params=params_of(length=0.4, speed=2.0, mass=1.5, gravity=9.81, time_step=time_step),
            bodies=lambda params: gather([box(params["mass"], (0.3, 0.2, 0.4)), *[box(1.0, (0.2, 0.3, 1.0))] * 2]),
            start=start,
            dynamics=Jointed(),
            joints=joints,
            loads=(gravity(),),
            measures=lambda motion, bodies, time, params: {"x": motion.position.x[0], "y": motion.position.y[2]},
        )
    )


def test_derivatives_through_joints_equal_central_differences(x64):
    simulation = hanging()
    simulation.check(simulation.params, jax.random.key(0))

    def place(params):
        end = segment(simulation, 60)(simulation.init(params, key()), params)
        found = simulation.diagnose(end, params)
        return found["x"] + 2 * found["y"]

    names = ["length", "speed", "mass", "gravity", "time_step"]
    slope = jax.jit(jax.grad(place))(simulation.params)
    difference = central_difference(jax.jit(place), simulation.params, names)
    for name in names:
        # The difference itself rounds by eps^(2/3) of the value, 1e-10.
        np.testing.assert_allclose(slope[name], difference[name], rtol=1e-7, atol=1e-9, err_msg=name)


def test_too_few_iterations_set_the_status(x64):
    simulation = chain(time_step=0.1)
    state = jax.jit(segment(simulation, 5))(simulation.init(simulation.params, key()), simulation.params)
    # Angular velocities of 5 rad/s times 0.1 s leave 0.5^8 of the error: far above round-off.
    assert status_of(simulation)(state, simulation.params) == Status.JOINTS_APART
    # The scene is held at the last state in which they were closed.
    assert float(state.time) < 0.45
    assert float(simulation.diagnose(state, simulation.params)["joint_error"]) < 1e-7
    later = jax.jit(segment(simulation, 5))(state, simulation.params)
    jax.tree.map(np.testing.assert_array_equal, later, state)
