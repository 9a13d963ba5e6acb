"""Impacts at exact times: a ball between a limit and the floor in closed form, and a table that falls on two feet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import Status
from simkit.rigid import mjcf

# The ball is stopped by the limit of its joint 0.5 m above its start, and by the floor 1 m below it.
BALL = """<mujoco><option timestep="0.1" gravity="0 0 -10"/>
<custom><numeric name="restitution" data="0.5"/></custom><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 1.1"><joint type="slide" axis="0 0 1" range="-9 0.5" limited="true"/><geom size="0.1"/></body>
</worldbody></mujoco>"""
STEPS = 8


def thrown(precision, impact_law="newton"):
    """Return ``params -> (height, speed, impacts)`` after the steps, and the parameters of a throw upwards at 4 m/s."""
    simulation = mjcf(BALL, engine="simkit", substeps=STEPS, events={"impact_law": impact_law})

    def run(params):
        memory = simulation.step(simulation.init(params, jax.random.key(0)), params).memory
        return memory.position[0], memory.velocity[0], memory.impacts

    params = jax.tree.map(lambda value: jnp.asarray(value, precision), dict(simulation.params))
    return run, {**params, "initial_velocity": jnp.asarray([4.0], precision)}


def height_in_closed_form(params):
    """Return the height after the limit and the floor have struck once each."""
    gravity, restitution, speed = params["gravity"], params["restitution"], params["initial_velocity"][0]
    start, time = params["initial_position"][0], STEPS * params["time_step"]
    up = jnp.sqrt(speed**2 - 2 * gravity * (0.5 - start))
    down = jnp.sqrt((restitution * up) ** 2 + 2 * gravity * 1.5)
    left = time - (speed - up) / gravity - (down - restitution * up) / gravity
    return restitution * down * left - gravity / 2 * left**2 - 1


def test_a_ball_between_a_limit_and_the_floor_moves_as_in_closed_form():
    """With its derivatives in reverse mode; members of a batch with unequal impacts move as one by one."""
    wrt = ["gravity", "restitution", "time_step", "initial_position", "initial_velocity"]
    with jax.enable_x64(True):
        run, params = thrown("float64")
        start = {name: params[name] for name in wrt}

        def height(chosen):
            height, _, impacts = run({**params, **chosen})
            return height, impacts

        differentiated = jax.jit(jax.value_and_grad(height, has_aux=True))
        (value, _), reverse = differentiated(start)
        exact, slopes = jax.value_and_grad(height_in_closed_form)(start)
        assert value == pytest.approx(float(exact), abs=1e-12)
        throws = [{**start, "initial_velocity": jnp.asarray([speed])} for speed in (4.0, 3.0, -2.0, 7.0)]
        moved = [{**start, name: start[name] + change} for name in wrt for change in (1e-6, -1e-6)]
        heights, impacts = jax.jit(jax.vmap(height))(jax.tree.map(lambda *each: jnp.stack(each), *throws, *moved))
        for member, throw in enumerate(throws):
            (alone, count), _ = differentiated(throw)
            assert heights[member] == pytest.approx(float(alone), abs=1e-12) and impacts[member] == count
        assert len(set(impacts[:4].tolist())) > 1
        for name, above, below in zip(wrt, heights[4::2], heights[5::2], strict=True):
            np.testing.assert_allclose(np.squeeze(reverse[name]), np.squeeze(slopes[name]), rtol=1e-10, err_msg=name)
            np.testing.assert_allclose(np.squeeze(reverse[name]), (above - below) / 2e-6, rtol=1e-6, err_msg=name)
    jax.clear_caches()


def test_a_ball_in_single_precision_is_near():
    """Also by the law of Poisson, which for one contact is that of Newton.

    Within 2e-5 m, 150 units of rounding: times of impacts are roots of gaps that are rounded at the scale of a meter.
    """
    run, params = thrown("float32", "poisson")
    height, _, impacts = jax.jit(run)(params)
    assert height.dtype == jnp.float32 and impacts == 2
    assert height == pytest.approx(float(height_in_closed_form(params)), abs=2e-5)


TABLE = """<mujoco><option timestep="0.1" gravity="0 0 -10"/><worldbody>
<geom type="plane" size="1 1 1" friction="0.1"/>
<body pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom size="0.1" pos="-0.5 0 -0.4" mass="0" friction="0"/>
<geom size="0.1" pos="0.5 0 -0.4" mass="0" friction="0"/></body></worldbody></mujoco>"""


def test_a_table_that_falls_on_two_feet_stands():
    """Without friction it slides on; with a little of it, an impact so flat would slip, which is reported."""
    with jax.enable_x64(True):
        simulation = mjcf(TABLE, engine="simkit", substeps=10, events={})
        step = jax.jit(simulation.step)
        for scale, speed, status in ((0.0, 2.0, Status.OK), (1.0, 0.0, Status.STANCE_SLIPS)):
            changed = {"friction_scale": jnp.asarray(scale), "initial_velocity": jnp.asarray([2.0, 0.0, 0.0])}
            params = {**simulation.params, **changed}
            state = step(simulation.init(params, jax.random.key(0)), params)
            np.testing.assert_allclose(state.memory.position[1:], [-0.5, 0.0], atol=1e-12)
            np.testing.assert_allclose(state.memory.velocity, [speed, 0.0, 0.0], atol=1e-12)
            assert state.memory.impacts == 1 and np.asarray(state.memory.standing).all()
            assert simulation.status(state, params) == status
    jax.clear_caches()
