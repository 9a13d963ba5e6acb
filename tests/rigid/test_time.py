"""The time of a run in float32: the sum of its steps, however many they are."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import segment
from simkit.rigid.algebra.vector import zeros
from simkit.rigid.bodies.bodies import repeat, sphere
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.free import Free
from simkit.rigid.models.mjcf import mjcf
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate
from tests.rigid.models.models import PENDULUM
from tests.tables import every

# Of float32, in s. Added to 400 s it is rounded to 33/32768 s, 0.7% more than it is.
STEP = np.float32(1e-3)


def swing(motion, bodies, time, params):
    nothing = zeros(bodies.mass)
    return Wrench(force=dataclasses.replace(nothing, x=nothing.x + jnp.cos(time)), torque=nothing)


def swung():
    return simulate(
        Scene(
            params={"time_step": jnp.asarray(STEP)},
            bodies=lambda params: repeat(sphere(1.0, 0.1), 1),
            start=lambda params, bodies, key: motion_of(bodies, zeros(bodies.mass)),
            dynamics=Free(),
            loads=(Load(wrench=swing),),
            measures=lambda motion, bodies, time, params: {"speed": motion.velocity.x[0]},
        )
    )


def run(simulation, steps, since=None):
    params = simulation.params | {"time_step": jnp.asarray(STEP)}
    start = simulation.init(params, jax.random.key(0))
    start = start if since is None else dataclasses.replace(start, time=jnp.asarray(since, start.time.dtype))
    return simulation.diagnose(jax.jit(segment(simulation, steps))(start, params), params)


@every("substeps", [1, 3])
def test_the_time_of_a_model_is_the_sum_of_its_steps(substeps):
    found = run(mjcf(PENDULUM, engine="mujoco", substeps=substeps), 100, since=400.0)["time"]
    np.testing.assert_allclose(found, 400 + 100 * substeps * float(STEP), rtol=1.2e-7)


def test_a_load_that_depends_on_time_uses_the_accurate_time():
    speed = run(swung(), 20_000, since=400.0)["speed"]
    # 20,000 sums of a number of order 1 in float32; a time that gains 0.7% would make it 0.13 by then.
    np.testing.assert_allclose(speed, np.sin(400 + 20_000 * float(STEP)) - np.sin(400), atol=2e-4)


def test_the_derivative_of_the_time_is_the_number_of_steps(x64):
    simulation = swung()

    def last(time_step):
        params = {"time_step": time_step}
        state = segment(simulation, 50)(simulation.init(params, jax.random.key(0)), params)
        return jnp.stack([state.time, state.motion.velocity.x[0]])

    found = jax.jit(jax.jacrev(last))(jnp.asarray(0.02))
    step = 1e-6
    numeric = (last(jnp.asarray(0.02 + step)) - last(jnp.asarray(0.02 - step))) / (2 * step)
    np.testing.assert_allclose(found[0], 50, rtol=1e-14)
    np.testing.assert_allclose(found, numeric, rtol=1e-8)
