"""Small models that every engine supports, and runs shared by several tests."""

import functools

import jax
import numpy as np

from simkit.core.rollout import trajectory
from simkit.rigid import mjcf

ENGINES = ("brax-spring", "brax-generalized", "brax-positional", "mjx", "mujoco")
DIFFERENTIABLE = ENGINES[:-1]

MASS, LENGTH, GRAVITY = 1.0, 0.3, 9.81
# A box of 0.2 x 0.2 x 0.6 m that swings about a hinge at its upper end.
INERTIA = MASS * (LENGTH**2 + (0.2**2 + 0.6**2) / 12)
PENDULUM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="rod" pos="0 0 1">
      <joint name="pivot" type="hinge" axis="0 1 0"/>
      <geom type="box" size="0.1 0.1 0.3" pos="0 0 -0.3" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="pivot" gear="2"/></actuator>
</mujoco>
"""
FALLING = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="ball" pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.1" mass="2"/></body>
  </worldbody>
</mujoco>
"""


@functools.cache
def simulation(text, engine, precision="float64", **config):
    with jax.enable_x64(precision == "float64"):
        return mjcf(text, engine=engine, **config)


@functools.cache
def runner(text, engine, steps, every, **config):
    """Return ``params, key -> trajectory`` in float64, compiled once."""
    return jax.jit(trajectory(simulation(text, engine, **config), steps, every))


def run(text, engine, steps, every=1, config=(), **params):
    """Return the last state, observed arrays and diagnostics of a run in float64."""
    found = simulation(text, engine, **dict(config))
    values = found.with_params(**params).params
    return jax.tree.map(np.asarray, runner(text, engine, steps, every, **dict(config))(values, jax.random.key(0)))
