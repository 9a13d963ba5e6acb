"""A model with every kind of joint and force of the engine in joint coordinates, and random states of it."""

import jax
import mujoco
import numpy as np

from simkit.rigid import mjcf
from simkit.rigid.models.source import compiled, read_spec

EVERY_JOINT = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" integrator="{integrator}"><flag contact="disable"/></option>
  <default><geom density="800"/></default>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 1" quat="0.9 0.1 0.3 0.2">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.05" pos="0.03 0.01 -0.02" euler="0.3 0.2 0.1"/>
      <body name="arm" pos="0.2 0 0" quat="0.8 0 0.6 0">
        <joint name="shoulder" type="ball" pos="0.02 0 0.01" damping="0.2"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0.1 0"/>
        <body name="hand" pos="0.3 0.1 0">
          <joint name="reach" type="slide" axis="1 0.5 0" stiffness="40" springref="0.05" damping="1.5" armature="0.1"/>
          <joint name="wrist" type="hinge" axis="0 1 0.3" pos="0.01 0.02 0" ref="0.2" damping="0.05" stiffness="2"/>
          <geom type="box" size="0.05 0.02 0.08"/>
        </body>
      </body>
      <body name="leg" pos="-0.1 0 -0.1">
        <joint name="hip" type="hinge" axis="0 1 0" armature="0.02"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.4"/>
      </body>
    </body>
    <body name="pendulum" pos="2 0 1">
      <joint name="pivot" type="hinge" axis="0 1 0" pos="0 0 0.4"/>
      <geom type="box" size="0.1 0.1 0.3"/>
    </body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="wrist" coef="0.5"/><joint joint="hip" coef="-1.5"/></fixed></tendon>
  <actuator>
    <motor name="push" joint="pivot" gear="3" ctrllimited="true" ctrlrange="-0.3 0.3"/>
    <position name="hold" joint="wrist" kp="6" kv="0.4"/>
    <general name="pull" tendon="both" gear="2" gainprm="4" forcelimited="true" forcerange="-0.5 0.5"/>
  </actuator>
</mujoco>
"""


def model(integrator="Euler"):
    """Return the compiled model."""
    return compiled(read_spec(EVERY_JOINT.format(integrator=integrator)))


def random_state(model, seed=0, speed=1.0):
    """Return coordinates with unit quaternions, and velocities."""
    random = np.random.default_rng(seed)
    position = model.qpos0 + random.normal(size=model.nq)
    for kind, first in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind < 2:
            turn = slice(first + 3 * (kind == 0), first + 3 * (kind == 0) + 4)
            position[turn] /= np.linalg.norm(position[turn])
    return position, speed * random.normal(size=model.nv)


def relative(found, wanted):
    """Return the largest difference relative to the largest number."""
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def trajectory_error(integrator):
    """Return the largest relative difference from MuJoCo after 100 steps, controls beyond their limits included."""
    with jax.enable_x64(True):
        system = model(integrator)
        simulation = mjcf(EVERY_JOINT.format(integrator=integrator), engine="simkit", substeps=100)
        position, velocity = random_state(system, seed=1)
        control = np.array([0.5, 0.4, -0.6])
        params = simulation.with_params(initial_position=position, initial_velocity=velocity, control=control).params
        state = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params)
        data = mujoco.MjData(system)
        data.qpos[:], data.qvel[:], data.ctrl[:] = position, velocity, control
        mujoco.mj_step(system, data, 100)
        return max(relative(state.memory.position, data.qpos), relative(state.memory.velocity, data.qvel))
