"""Slipping, rolling and turning against MuJoCo; none of the engines has restitution to compare with."""

import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import bouncing_ball

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key_data(jax.random.key(0))
TIME_STEP, STEPS, RADIUS, FRICTION = 1e-3, 1000, 0.1, 0.3

SCENE = f"""
<mujoco>
  <option timestep="{TIME_STEP}" gravity="0 0 -9.81" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="50 50 1" friction="{FRICTION} 0 0"/>
    <body pos="0 0 {{height}}"><freejoint/><geom type="sphere" size="{RADIUS}" friction="{FRICTION} 0 0"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def mujoco():
    return pytest.importorskip("mujoco")


def mujoco_history(mujoco, speed, spin, height):
    """Return time, x, velocity along x, angular velocity about y and orientation after every step."""
    model = mujoco.MjModel.from_xml_string(SCENE.format(height=RADIUS + height))
    data = mujoco.MjData(model)
    data.qvel[0], data.qvel[4] = speed, spin
    rows = []
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
        rows.append([data.time, data.qpos[0], data.qvel[0], data.qvel[4], *data.qpos[3:7]])
    return np.array(rows)


@functools.cache
def compiled():
    return jax.jit(trajectory(bouncing_ball(), STEPS, 1))


def our_history(speed, spin, height):
    simulation = bouncing_ball().with_params(
        launch_speed=speed,
        launch_angle=0.0,
        launch_height=height,
        spin=spin,
        radius=RADIUS,
        friction=FRICTION,
        time_step=TIME_STEP,
    )
    return jax.tree.map(lambda a: np.asarray(a)[1:], compiled()(simulation.params, KEY)[1:])


@pytest.mark.parametrize(("speed", "spin"), [(2.0, 0.0), (2.0, -30.0), (0.0, 40.0)])
def test_a_sphere_slips_and_rolls_as_in_mujoco(mujoco, speed, spin):
    theirs = mujoco_history(mujoco, speed, spin, 0.0)
    frames, diagnostics = our_history(speed, spin, 0.0)
    velocity = frames["velocity"][:, 0, 0]
    fastest = max(speed, abs(spin) * RADIUS)
    # MuJoCo's floor gives way: the ball sinks by 0.37 mm, so its lever arm is 0.4 % short, and at first it bobs, which
    # makes its friction swing about mu g until the contact has settled, 0.02 s or so: 0.02 mu g = 0.06 m/s.
    assert np.max(np.abs(theirs[:, 2] - velocity)) < 0.06
    assert abs(theirs[-1, 2] - velocity[-1]) < 4e-3 * fastest
    assert abs(theirs[-1, 3] * RADIUS - velocity[-1]) < 4e-3 * fastest
    assert np.max(np.abs(theirs[:, 1] - diagnostics["position_x"])) < 4e-3 * fastest * STEPS * TIME_STEP


def test_a_ball_in_flight_turns_as_in_mujoco(mujoco):
    theirs = mujoco_history(mujoco, 1.0, 25.0, 10.0)
    frames, _ = our_history(1.0, 25.0, 10.0)
    # Both turn exactly under a constant angular velocity: 1000 roundings of 1e-16.
    np.testing.assert_allclose(frames["orientation"][:, 0], theirs[:, 4:], atol=1e-12)
