"""Pairs that pass each other are found in batches of candidates, on which the result does not depend."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.quaternion import quaternion, unit
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.bodies.bodies import box, capsule, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision import passing as module
from simkit.rigid.collision.rounds import rounds

MEMBERS = 40
BODIES = (
    box(1.0, (0.2, 0.1, 0.3)),
    sphere(1.0, 0.1),
    capsule(1.0, 0.3, 0.05),
    box(2.0, (0.1, 0.4, 0.2)),
    sphere(2, 0.2),
)


def test_members_have_the_result_that_each_has_alone(x64):
    bodies, count = gather(BODIES), len(BODIES)
    many = each(lambda values: jnp.repeat(values[:, None], MEMBERS, axis=1), bodies)
    at, speed, spin = (
        Vector(*scale * jax.random.normal(key, (3, count, MEMBERS)))
        for scale, key in zip((0.2, 30.0, 10.0), jax.random.split(jax.random.key(0), 3), strict=True)
    )
    turned = unit(quaternion(jax.random.normal(jax.random.key(1), (count, MEMBERS, 4))))
    motion, time_step = motion_of(many, at, turned, speed), jnp.asarray(0.01)
    real = np.maximum(*rounds(count)) < count
    candidates = jnp.asarray(real[..., None] & np.random.default_rng(0).choice((False, True), (*real.shape, MEMBERS)))
    assert jnp.sum(candidates) > 2 * module.BATCH
    passing = jax.jit(module.passing)
    together = passing(many, motion, speed, spin, candidates, time_step)
    one = [
        passing(bodies, *each(lambda v, k=k: v[..., k], (motion, speed, spin, candidates)), time_step)
        for k in range(MEMBERS)
    ]
    assert jnp.array_equal(together, jnp.stack(one, axis=-1))
    assert 50 < jnp.sum(together) < jnp.sum(candidates) - 50
