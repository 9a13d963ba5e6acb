"""Near pairs of many bodies: complete, colored, carried over, and larger where they do not fit."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.near_pairs import build, hulls, refreshed
from simkit.rigid.collision.pairs import contacts
from simkit.rigid.shapes.box import box
from tests.rigid.collision.test_near_pairs import (
    listed,  # noqa: F401
    pairs_of,
    spheres,
)


def test_a_list_that_does_not_fit_says_how_many_rounds_it_needs(listed):
    _, _, small, near = listed
    assert bool(small.overflowed) and small.enlarged().capacity <= near.capacity <= 64


def test_a_list_is_kept_until_a_body_leaves_its_margin_and_pairs_are_then_found_again(listed):
    place, radius, _, near = listed
    bodies, refresh = spheres(radius), jax.jit(refreshed)

    def moved_by(distance):
        moved = place + np.array([distance, 0, 0], np.float32)
        # A speed that needs 0.05 m in the given time.
        motion = motion_of(bodies, jnp.asarray(moved), velocity=(0.5, 0.0, 0.0))
        return refresh(near, bodies, motion, jnp.float32(0.1))

    kept, _ = moved_by(0.09)
    assert int(kept.builds) == int(near.builds)
    fresh, origin = moved_by(0.11)
    assert int(fresh.builds) == int(near.builds) + 1
    old = list(zip(np.asarray(near.first).ravel(), np.asarray(near.second).ravel(), strict=True))
    places = {pair: index for index, pair in enumerate(old)}
    real = np.asarray(fresh.are_real)
    for one, other, where in zip(*(np.asarray(a)[real] for a in (fresh.first, fresh.second, origin)), strict=True):
        assert where == places.get((one, other), near.first.size)


def test_boxes_are_listed_if_their_faces_are_near_and_not_because_their_enclosing_spheres_are():
    # Cubes in a row, turned about it, whose enclosing spheres reach beyond the next neighbor.
    bodies, gap = repeat(box(1.0, 0.2), 30), 0.01
    turned = np.linspace(0, 3, 30)[:, None] * [0.5, 0, 0]
    orientation = np.concatenate([np.cos(np.linalg.norm(turned, axis=1))[:, None], np.sin(turned)], axis=1)
    motion = motion_of(
        bodies,
        jnp.arange(30.0)[:, None] * jnp.array([0.2 + gap, 0, 0]),
        jnp.asarray(orientation / np.linalg.norm(orientation, axis=1)[:, None], jnp.float32),
    )
    near = build(hulls(bodies, motion), jnp.full(30, 0.006), 16)
    assert not near.overflowed and pairs_of(near)[0] == {(one, one + 1) for one in range(29)}
    gaps = np.asarray(contacts(bodies, motion, near).gap).reshape(4, 16, -1)[:, np.asarray(near.are_real)]
    np.testing.assert_allclose(gaps, gap, atol=1e-5)
    assert pairs_of(build(hulls(bodies, motion), jnp.full(30, 0.004), 16))[0] == set()
