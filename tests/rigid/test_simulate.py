"""Scenes as simulations: user-defined loads, ensembles with members last, blocks of members, and bad bodies."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from simkit.cli.main import main
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector, cross, norm, vector
from simkit.rigid.bodies.bodies import box, gather, sphere
from simkit.rigid.bodies.motion import Wrench, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import applied, gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)


def swirl(motion, bodies, time, params):
    """A force of every kind a user may write: pairs of bodies, sums, time, parameters of any shape."""
    between = motion.position - Vector(*(part[::-1] for part in vars(motion.position).values()))
    wind = params["wind"][0] * jnp.cos(time) * jnp.ones_like(bodies.mass)
    center = jnp.sum(bodies.mass * motion.position.z) / jnp.sum(bodies.mass)
    force = -params["stiffness"] * between + Vector(wind, params["wind"][1] * bodies.mass, center - motion.position.z)
    braking = -1e-2 * angular_velocity(motion, bodies)
    return Wrench(force=force, torque=braking + 1e-3 * cross(force, motion.velocity))


def two_bodies(integrator="velocity_verlet"):
    params = {"mass": 1.0, "spin": 2.0, "stiffness": 3.0, "gravity": 9.81, "time_step": 0.01, "wind": [0.4, -0.2]}

    def start(params, bodies, key):
        position = vector(jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0]]) + 0.1 * jax.random.normal(key, (2, 3)))
        return motion_of(bodies, position, angular_velocity=Vector(params["spin"] * jnp.ones(2), *jnp.eye(2)))

    def measures(motion, bodies, time, params):
        return {"distance": norm(motion.position[0] - motion.position[1])}

    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=lambda params: gather([sphere(params["mass"], 0.1), box(2.0, (0.1, 0.2, 0.3))]),
            start=start,
            dynamics=Free(integrator),
            loads=(gravity(), applied(swirl)),
            measures=measures,
        )
    )


def test_a_start_that_is_not_finite_is_refused_by_body_and_quantity():
    def start(params, bodies, key):
        speed = jnp.sqrt(jnp.stack([params["speed_squared"], -params["speed_squared"]]))
        place = vector(jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0]]))
        return motion_of(bodies, place, velocity=Vector(speed, 0 * speed, 0 * speed))

    simulation = simulate(
        Scene(
            params={"speed_squared": jnp.asarray(1.0), "time_step": jnp.asarray(0.01)},
            bodies=lambda params: gather([sphere(1.0, 0.1), sphere(1.0, 0.1)]),
            start=start,
            dynamics=Free(),
        )
    )
    assert simulation.check is not None
    simulation.check({**simulation.params, "speed_squared": jnp.asarray(0.0)}, KEY)
    with pytest.raises(UserError, match=r"body 1 has no finite velocity at the start: .* a root of a negative number"):
        simulation.check(simulation.params, KEY)


def test_a_non_finite_motion_has_the_status_non_finite():
    simulation = two_bodies()
    state = simulation.init(simulation.params, KEY)
    assert simulation.status is not None
    assert simulation.status(state, simulation.params) == Status.OK
    position = dataclasses.replace(state.motion.position, x=jnp.array([0.0, jnp.nan]))
    broken = dataclasses.replace(state, motion=dataclasses.replace(state.motion, position=position))
    assert simulation.status(broken, simulation.params) == Status.NON_FINITE


def test_impossible_bodies_are_refused_before_a_run():
    simulation = two_bodies()
    assert simulation.check is not None
    simulation.check(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"body 0 \(sphere\): mass = -1 kg is not positive"):
        simulation.check({**simulation.params, "mass": jnp.array(-1.0)}, jax.random.key(0))


def test_impossible_moments_of_inertia_end_a_run_with_one_line_and_code_2(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "asymmetric_top", "--set", "moment_z=5"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "moments of inertia 1, 2, 5 kg m^2 break the triangle inequality" in line and "at most 3" in line
