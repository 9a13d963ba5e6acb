"""Bodies that land flat do not start to rotate, and bodies that pass each other closely have no impact."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import box, capsule, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")

SHAPES = {
    "sphere": lambda *surface: sphere(1.0, 0.1, *surface),
    "box": lambda *surface: box(1.0, (0.2, 0.3, 0.1), *surface),
    "capsule": lambda *surface: capsule(1.0, 0.05, 0.4, *surface),
}


def scene_of(kinds, planes=None):
    """Return bodies in flight; positions, rotation vectors and velocities are parameters, (n, 3) each."""
    params = {name: jnp.zeros((len(kinds), 3)) for name in ("at", "turned", "velocity", "spin")}
    params |= {name: jnp.asarray(value) for name, value in {"time_step": 0.01, "e": 0.5, "friction": 0.0}.items()}
    return simulate(
        Scene(
            params=params,
            bodies=lambda p: gather([SHAPES[kind](p["friction"], p["e"]) for kind in kinds]),
            start=lambda p, bodies, key: motion_of(
                bodies, vector(p["at"]), exponential(vector(p["turned"])), vector(p["velocity"]), vector(p["spin"])
            ),
            dynamics=Impulses(),
            planes=None if planes is None else lambda p: planes(),
            measures=lambda motion, bodies, time, p: {"speed": motion.velocity.z[0]},
        )
    )


@functools.cache
def compiled(kinds, steps, planes=None):
    simulation = scene_of(kinds, planes)
    run = jax.jit(trajectory(simulation, steps, 1))

    def with_values(**values):
        given = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
        _, observed, diagnosed = run({**simulation.params, **given}, jax.random.key(0))
        return {name: np.asarray(value) for name, value in {**observed, **diagnosed}.items()}

    return with_values


def test_friction_on_a_flat_landing_loses_energy_without_spin_about_the_normal():
    run = compiled(("box",), 3, floor)
    for speed in (0.3, 1.0, 3.0):
        found = run(at=[[0, 0, 0.051]], velocity=[[speed, 0, -2.0]], friction=0.3, e=0.5)
        assert found["angular_velocity"][-1, 0, 2] == pytest.approx(0, abs=1e-9)
        assert found["velocity"][-1, 0, 0] < 0.95 * speed
        assert np.all(np.diff(found["energy"]) < 1e-12)
