"""Impacts of mechanisms at exact times: gaits, bounces, simultaneous impacts, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import Status
from simkit.rigid import mjcf
from simkit.rigid.articulated.gait import gait


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield
    jax.clear_caches()


def chart(point):
    """Return the state of two straight legs just after an impact, from half their angle and both rates.

    The first leg stands, ahead of the hip, and the second one is as far behind.
    """
    angle, standing, swinging = point
    hip = jnp.stack([jnp.cos(angle), jnp.sin(angle)]) * standing
    return jnp.stack([0 * angle, jnp.cos(angle), -angle, angle]), jnp.stack([*hip, standing, swinging])


def section(position, velocity):
    """Return the point of a state in which the second leg has just struck, and is the first of the next stride."""
    return jnp.stack([(position[2] - position[3]) / 2, velocity[3], velocity[2]])


LEG = """<body name="{name}"><joint name="{name}" axis="0 1 0"/><inertial pos="0 0 -1" mass="{foot}"
diaginertia="1e-14 1e-14 1e-14"/><geom size="1e-9" pos="0 0 -1" mass="0" conaffinity="0"/></body>"""
SIMPLEST = """<mujoco><option timestep="0.05" gravity="0 0 -1"/><worldbody>
<geom type="plane" size="5 5 1" friction="2"/><body name="hip">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{left}{right}</body></worldbody></mujoco>"""


def test_the_simplest_walker_has_its_published_gait_and_multipliers():
    """Garcia, Chatterjee, Ruina and Coleman 1998, doi:10.1115/1.2798313, slope 0.009; feet of 1e-7 of the hip."""
    left, right = (LEG.format(name=name, foot=1e-7) for name in ("left", "right"))
    simulation = mjcf(SIMPLEST.format(left=left, right=right), engine="simkit", events={"least_step": 0.3})
    params = {**simulation.params, "slope": jnp.asarray(0.009)}
    found = gait(simulation, chart, section, [0.2, 0.2, 0.18], params, steps=100)
    np.testing.assert_allclose(found.point[:2], [0.200310900544287, 0.199832473004977], atol=1e-6)
    leading = found.multipliers[np.argsort(-np.abs(found.multipliers))[:2]]
    np.testing.assert_allclose(leading.real, -0.190099639402167, atol=1e-4)
    np.testing.assert_allclose(np.abs(leading.imag), 0.557599274284362, atol=1e-4)


BALL = """<mujoco><option timestep="0.1" gravity="0 0 -10"/>
<custom><numeric name="restitution" data="0.5"/></custom><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 1.1"><joint type="slide" axis="0 0 1"/><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("impact_law", ["newton", "poisson"])
def test_a_ball_bounces_as_in_closed_form(impact_law):
    """After the fall from a height it rises at e times its speed; with the derivative by that height, in both modes."""
    simulation = mjcf(BALL, engine="simkit", substeps=6, events={"impact_law": impact_law})

    def height(drop):
        params = {**simulation.params, "initial_position": (drop - 1)[None]}
        return simulation.step(simulation.init(params, jax.random.key(0)), params).memory.position[0] + 1

    def expected(drop):
        fall = jnp.sqrt(2 * drop / 10)
        left = 0.6 - fall
        return 0.5 * 10 * fall * left - 10 / 2 * left**2

    drop = jnp.asarray(1.0)
    reverse, forward = jax.jit(jax.value_and_grad(height)), jax.jit(jax.jacfwd(height))
    value, slope = reverse(drop)
    assert value == pytest.approx(float(expected(drop)), abs=1e-12)
    assert slope == pytest.approx(float(jax.grad(expected)(drop)), abs=1e-10)
    assert forward(drop) == pytest.approx(float(slope), abs=1e-12)


TABLE = """<mujoco><option timestep="0.1" gravity="0 0 -10"/><worldbody><geom type="plane" size="1 1 1" {friction}/>
<body pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom size="0.1" pos="-0.5 0 -0.4" mass="0" friction="0"/>
<geom size="0.1" pos="0.5 0 -0.4" mass="0" friction="0"/></body></worldbody></mujoco>"""


def test_two_points_that_strike_at_once_stop_a_table_that_then_slides():
    simulation = mjcf(TABLE.format(friction='friction="0"'), engine="simkit", substeps=10, events={})
    params = {**simulation.params, "initial_velocity": jnp.array([2.0, 0.0, 0.0])}
    memory = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params).memory
    np.testing.assert_allclose(memory.position, [2.0, -0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(memory.velocity, [2.0, 0.0, 0.0], atol=1e-12)
    assert memory.impacts == 1 and np.asarray(memory.standing).all() and not memory.unsolved


def test_a_point_that_would_slip_is_reported():
    """The same table with friction, which an impact at a flat angle exceeds."""
    simulation = mjcf(TABLE.format(friction='friction="0.1"'), engine="simkit", substeps=10, events={})
    params = {**simulation.params, "initial_velocity": jnp.array([2.0, 0.0, 0.0])}
    state = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params)
    assert simulation.status(state, params) == Status.STANCE_SLIPS
