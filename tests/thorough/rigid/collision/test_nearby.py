"""The broad phase misses no pair that may touch within a step, and excluded pairs have no effect."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, capsule, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.nearby import nearby
from simkit.rigid.collision.pairs import contacts
from simkit.rigid.collision.rounds import rounds
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

BODIES = [
    box(1.0, (0.2, 0.1, 0.3)),
    sphere(1.0, 0.1),
    capsule(1.0, 0.3, 0.05),
    box(2.0, (0.1, 0.4, 0.2)),
    sphere(0.5, 0.2),
]


@pytest.mark.parametrize("count", [4, 5])
def test_every_pair_that_a_step_can_bring_together_is_near(x64, count):
    bodies, time_step = gather(BODIES[:count]), jnp.asarray(0.01)
    left_out = 0
    for seed in range(30):
        keys = jax.random.split(jax.random.key(seed), 2)
        at, speed = (scale * jax.random.normal(key, (3, count)) for key, scale in zip(keys, (0.5, 3.0), strict=True))
        motion = motion_of(bodies, Vector(*at), None, Vector(*speed))
        near = np.asarray(nearby(bodies, motion.position, motion.velocity, time_step))
        gap = np.asarray(contacts(bodies, motion).gap).min(axis=0).reshape(near.shape)
        first, second = rounds(count)
        real = np.maximum(first, second) < count
        fastest = 2 * np.linalg.norm(np.asarray(speed), axis=0).max()
        assert np.all(near[real & (gap < 0.01 * fastest)])
        assert not np.any(near[~real])
        left_out += np.sum(~near[real])
    assert left_out > 50


def apart_or_together(spread):
    """Return a scene of three balls on a floor, at distances given by a parameter."""

    def start(params, bodies, key):
        count = params["spread"] * jnp.arange(3.0)
        nothing = jnp.zeros(3)
        return motion_of(bodies, Vector(count, nothing, nothing + 0.15), None, Vector(-count, nothing, nothing))

    return simulate(
        Scene(
            params={"gravity": jnp.asarray(9.81), "time_step": jnp.asarray(0.005), "spread": jnp.asarray(spread)},
            bodies=lambda params: gather([sphere(1.0, 0.1)] * 3),
            start=start,
            dynamics=Impulses(),
            planes=lambda params: floor(),
            loads=(gravity(),),
        )
    )


def test_a_member_does_not_depend_on_near_pairs_of_other_members(x64):
    many = ensemble(apart_or_together(0.0), ("spread",))
    keys = jax.random.split(jax.random.key(0), 2)
    run = jax.jit(segment(many, 100))
    ends = []
    for other in (5.0, 0.25):
        params = many.params | {"spread": jnp.asarray([2.0, other])}
        ends.append(run(many.init(params, keys), params))
    for a, b in zip(*(jax.tree.leaves(end.motion) for end in ends), strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    # The other ones of the second run did meet: 0.5 m/s of the one behind became the mean, 0.25 m/s.
    assert float(ends[1].motion.velocity.x[1, 2]) > -0.3
    assert not np.any(ends[0].memory.pushes.pairs.along)
