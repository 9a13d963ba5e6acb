"""Impacts of mechanisms at exact times: walkers, bounces, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import Status
from simkit.rigid import mjcf
from simkit.rigid.articulated.gait import gait, stride
from simkit.scenario.made_in_python import load


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
    """The second leg has struck, and is the first one of the next stride."""
    return jnp.stack([(position[2] - position[3]) / 2, velocity[3], velocity[2]])


SIMPLEST = """<mujoco><option timestep="0.02" gravity="0 0 -1"/><worldbody>
<geom type="plane" size="5 5 1" friction="2"/><body name="hip">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
{left}{right}</body></worldbody></mujoco>"""
LEG = """<body name="{name}"><joint name="{name}" axis="0 1 0"/><inertial pos="0 0 -1" mass="{foot}"
diaginertia="1e-14 1e-14 1e-14"/><geom size="1e-9" pos="0 0 -1" mass="0" conaffinity="0"/></body>"""


def simplest(foot):
    left, right = (LEG.format(name=name, foot=foot) for name in ("left", "right"))
    return mjcf(SIMPLEST.format(left=left, right=right), engine="simkit", events={"least_step": 0.1})


def walker(name, **params):
    simulation = load(name)
    return simulation, {key: jnp.asarray(value) for key, value in params.items()}
