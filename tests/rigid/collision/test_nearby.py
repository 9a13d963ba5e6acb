"""The broad phase misses no pair that may touch within a step, and excluded pairs have no effect."""

import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather, sphere
from simkit.rigid.collision.nearby import nearby


def test_bodies_that_touch_at_rest_are_near(x64):
    bodies = gather([sphere(1.0, 0.1), sphere(1.0, 0.1)])
    still = Vector(*jnp.zeros((3, 2)))
    assert np.all(nearby(bodies, Vector(jnp.asarray([0.1, 0.3]), still.y, still.z), still, jnp.asarray(0.01)))
