"""All pairs of a collection, in the order of the rounds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simkit.rigid.algebra.quaternion import quaternion
from simkit.rigid.algebra.vector import Vector, vector
from simkit.rigid.bodies.bodies import box, capsule, disk, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.nearby import nearby
from tests.rigid.collision.shapes import Shapes


def test_bodies_that_touch_at_rest_are_near(x64):
    bodies = gather([sphere(1.0, 0.1), sphere(1.0, 0.1)])
    still = Vector(*jnp.zeros((3, 2)))
    assert np.all(nearby(bodies, Vector(jnp.asarray([0.1, 0.3]), still.y, still.z), still, jnp.asarray(0.01)))


pytestmark = pytest.mark.usefixtures("x64")
KINDS = ("box", "sphere", "capsule", "box", "disk", "capsule", "box")


def scene(kinds, seed):
    random = np.random.default_rng(seed)
    make = {
        "box": lambda: box(1.0, random.uniform(0.4, 1, 3)),
        "sphere": lambda: sphere(1.0, random.uniform(0.2, 0.5)),
        "disk": lambda: disk(1.0, random.uniform(0.2, 0.5)),
        "capsule": lambda: capsule(1.0, random.uniform(0.1, 0.3), random.uniform(0.4, 1)),
    }
    bodies = gather([make[kind]() for kind in kinds])
    turning = Rotation.random(len(kinds), rng=random)
    x, y, z, w = turning.as_quat().T
    center = random.normal(size=(len(kinds), 3))
    orientation = quaternion(jnp.asarray(np.stack([w, x, y, z], axis=-1)))
    motion = motion_of(bodies, vector(jnp.asarray(center)), orientation)
    halves = np.stack([np.asarray(half) for half in jax.tree.leaves(bodies.half_lengths)], axis=-1)
    return bodies, motion, Shapes(center, turning.as_matrix(), halves, np.asarray(bodies.radius))


@functools.cache
def compiled(function):
    return jax.jit(function)
