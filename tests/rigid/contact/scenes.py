"""Small scenes for tests of contact."""

import jax
import jax.numpy as jnp

from simkit.core.rollout import trajectory
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate


def scene(bodies, position, velocity, angular_velocity=None, planes=None, time_step=2e-3, weight=9.81, method=None):
    """Return the simulation of given bodies, from positions and velocities (n, 3)."""

    def start(params, bodies, key):
        columns = [
            None if values is None else Vector(*jnp.asarray(values, dtype=float).T)
            for values in (position, velocity, angular_velocity)
        ]
        return motion_of(bodies, columns[0], None, columns[1], columns[2])

    return simulate(
        Scene(
            params={"gravity": jnp.asarray(weight, dtype=float), "time_step": jnp.asarray(time_step, dtype=float)},
            bodies=lambda params: gather(bodies),
            start=start,
            dynamics=method or Impulses(),
            planes=planes,
            loads=(gravity(),),
        )
    )


def run(simulation, steps, every=None):
    """Return the observed arrays and diagnostics of a simulation."""
    compiled = jax.jit(trajectory(simulation, steps, every or steps))
    _, observed, diagnosed = compiled(simulation.params, jax.random.key(0))
    return observed, diagnosed
