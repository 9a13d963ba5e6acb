"""Contacts, limits, friction and equalities in joint coordinates, by hard impulses."""

import itertools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simkit.rigid import mjcf
from simkit.rigid.articulated.constraints import situation
from simkit.rigid.articulated.dynamics import forward_kinematics
from simkit.rigid.articulated.tree import kinematic_tree, model_of
from simkit.rigid.models.constraints_of_model import constraints_of
from tests.rigid.articulated.test_contact import BLOCK, HEAD


def end_of_block(values):
    """Return the way of a block on the floor in 0.2 s, and its last memory.

    Args:
        values: its speed in m/s, friction scale and gravity in m/s^2, (3,).
    """
    simulation = mjcf(BLOCK, engine="simkit", substeps=100)
    speed, scale, gravity = values
    params = {**simulation.params, "friction_scale": scale, "gravity": gravity}
    params["initial_velocity"] = params["initial_velocity"].at[0].set(speed)
    memory = simulation.step(simulation.init(params, jax.random.key(0)), params).memory
    return memory.position[0], memory


def test_a_sliding_block_stops_by_coulombs_law():
    """The friction of a pair is the larger one. Velocities change at whole steps, which shortens the way by v h / 2."""
    with jax.enable_x64(True):
        way, last = jax.jit(end_of_block)(jnp.array([0.6, 1.0, 9.81]))
        assert way == pytest.approx(0.6**2 / (2 * 0.4 * 9.81) - 0.6 * 0.002 / 2, abs=1e-5)
        assert np.abs(last.velocity).max() < 1e-9 and abs(last.position[2] - 0.1) < 1e-9 and last.misfit < 1e-6


ROUND = """<mujoco><worldbody><geom type="plane" size="1 1 1" euler="10 20 0" pos="0.1 0.2 0.3" margin="9"/><body>
<freejoint/><geom type="{kind}" size="0.1 0.2 0.3" pos="0.03 0.01 -0.02" euler="30 20 10" margin="9"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("kind", ["ellipsoid", "cylinder"])
def test_the_lowest_point_of_a_round_shape_above_a_plane_is_that_of_mujoco(kind):
    """A cylinder errs by the radius times `LEVEL` over twice the sine of its tilt."""
    model = model_of(ROUND.format(kind=kind))
    data, tree, constraints = mujoco.MjData(model), kinematic_tree(model), constraints_of(model)
    with jax.enable_x64(True):
        points = jax.jit(lambda q: situation(constraints, tree, forward_kinematics(tree, q), q))
        for pose in np.random.default_rng(0).normal(size=(50, 7)):
            pose[3:] /= np.linalg.norm(pose[3:])
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            theirs, ours = min(data.contact, key=lambda one: one.dist), points(pose)
            lowest = np.argmin(ours.gap)
            assert ours.gap[lowest] == pytest.approx(theirs.dist, abs=1e-10)
            np.testing.assert_allclose(ours.place[lowest], theirs.pos, atol=1e-10)


PENDULUM = f"""{HEAD}{{custom}}<worldbody><body><joint axis="0 1 0" limited="true" range="-30 100"/>
<geom size="0.1" pos="0 0 -1" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_pendulum_stops_or_bounces_at_its_limit(restitution):
    """From 90 degrees to -30: the speed at the limit is that of the height, 2 g m l cos(30 deg) / I."""
    custom = f'<custom><numeric name="restitution" data="{restitution}"/></custom>' if restitution else ""
    with jax.enable_x64(True):
        simulation = mjcf(PENDULUM.format(custom=custom), engine="simkit", substeps=1)
        params = simulation.with_params(initial_position=[np.pi / 2]).params

        @jax.jit
        def run(state):
            return jax.lax.scan(lambda s, _: (simulation.step(s, params), s.memory), state, None, 600)[1]

        memory = run(simulation.init(params, jax.random.key(0)))
        angle, speed = np.asarray(memory.position[:, 0]), np.asarray(memory.velocity[:, 0])
        assert angle.min() > -np.pi / 6 - 1e-9
        if restitution:
            wanted = np.sqrt(2 * 9.81 * np.cos(np.pi / 6) / (1 + 0.4 * 0.01))
            after = speed[np.argmax(speed > 0)]
            # Weight changes the speed by 0.01 rad/s in a step.
            assert after == pytest.approx(restitution * wanted, abs=0.02)
        else:
            arrived = int(np.argmax(angle < -np.pi / 6 + 1e-9))
            # The compliance of the limit leaves a share of 1e-8 of the speed.
            assert arrived and -1e-7 < speed[arrived + 1] < 0.02


LINKAGE = """<mujoco><option timestep="0.002"/><default><geom type="capsule" size="0.03"/></default><worldbody>
<body><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 1"/>
<body name="coupler" pos="0 0 1"><joint axis="0 1 0"/><geom fromto="0 0 0 2 0 0"/></body></body>
<body name="rocker" pos="2 0 0"><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 1"/></body></worldbody>
<contact><exclude body1="coupler" body2="rocker"/></contact>
<equality><connect body1="coupler" body2="rocker" anchor="2 0 0"/></equality></mujoco>"""


def test_a_four_bar_linkage_stays_closed():
    """Bars of a parallelogram turn alike; a turn of 4 s would open a loop without correction by centimeters."""
    with jax.enable_x64(True):
        simulation = mjcf(LINKAGE, engine="simkit", substeps=2000)
        params = simulation.with_params(initial_velocity=[1.0, -1.0, 1.0]).params
        state = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params)
        crank, coupler, rocker = np.asarray(state.memory.position)
        assert crank > 2 and abs(crank - rocker) < 1e-5 and abs(crank + coupler) < 1e-5


BALL = """<mujoco><option timestep="0.004"/><custom><numeric name="restitution" data="1"/></custom><worldbody>
<geom type="plane" size="1 1 1"/><body pos="0 0 1.1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


def test_a_ball_that_bounces_without_loss_rises_to_where_it_fell_from():
    """20 bounces from 1 m; the highest of the frames misses the apex by up to g h^2 / 8 = 2e-5 m."""
    with jax.enable_x64(True):
        simulation = mjcf(BALL, engine="simkit")
        params = simulation.params

        @jax.jit
        def run(state):
            return jax.lax.scan(lambda s, _: (simulation.step(s, params), s.memory.position[2]), state, None, 4600)[1]

        height = np.asarray(run(simulation.init(params, jax.random.key(0)))) - 0.1
        impacts = np.flatnonzero((height[1:-1] < height[:-2]) & (height[1:-1] <= height[2:]))
        assert len(impacts) >= 20
        apexes = [height[a:b].max() for a, b in itertools.pairwise(impacts)]
        np.testing.assert_allclose(apexes, 1, atol=2.5e-5)
