"""Near pairs of many bodies: complete, colored, carried over, and larger where they do not fit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.near_pairs import build, hulls, refreshed, rounds_at_start
from simkit.rigid.collision.pairs import contacts
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere

COUNT, MARGIN = 96, 0.15


def heap(seed=0):
    """Return places and radii of spheres that overlap in places, and some far away."""
    random = np.random.default_rng(seed)
    place = random.uniform(-4, 4, (COUNT, 3)) * [1, 1, 0.3]
    place[:3] += 1e4
    return place.astype(np.float32), random.uniform(0.5, 1.0, COUNT).astype(np.float32)


def spheres(radius):
    """Return spheres of these radii."""
    return dataclasses.replace(repeat(sphere(1.0, 1.0), len(radius)), radius=jnp.asarray(radius))


def pairs_of(near):
    """Return the pairs of a list as a set, and how many it holds."""
    real = np.asarray(near.are_real)
    first, second = np.asarray(near.first)[real], np.asarray(near.second)[real]
    return set(zip(first.tolist(), second.tolist(), strict=True)), len(first)


def wanted(place, radius, margin):
    """Return all near pairs by all distances."""
    reach = radius[:, None] + radius + 2 * margin
    near = np.linalg.norm(place[:, None] - place, axis=-1) < reach
    return set(zip(*(side.tolist() for side in np.nonzero(np.triu(near, 1))), strict=True))


@pytest.fixture(scope="module")
def listed():
    """Return places, radii and their list, in as many rounds as it needs."""
    place, radius = heap()
    bodies = spheres(radius)
    arguments = hulls(bodies, motion_of(bodies, jnp.asarray(place))), jnp.full(COUNT, MARGIN, jnp.float32)
    small = build(*arguments, 4)
    near = small
    while bool(near.overflowed):
        near = build(*arguments, near.enlarged().capacity)
    return place, radius, small, near


def test_a_list_that_does_not_fit_says_how_many_rounds_it_needs(listed):
    _, _, small, near = listed
    assert bool(small.overflowed) and small.enlarged().capacity <= near.capacity <= 64


def test_every_near_pair_is_listed_once(listed):
    place, radius, _, near = listed
    found, number = pairs_of(near)
    assert number == len(found) and found == wanted(place, radius, MARGIN)


def test_no_body_has_two_partners_in_a_round(listed):
    near = listed[3]
    for both in np.concatenate([near.first, near.second], axis=1):
        assert len(set(both.tolist())) == len(both)


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


def test_more_rounds_hold_the_same_pairs(listed):
    near = listed[3]
    larger = near.resized(near.capacity + 8)
    assert pairs_of(larger) == pairs_of(near)
    assert len(set(np.asarray(larger.first[-1]).tolist())) == near.first.shape[1]
    assert dataclasses.replace(larger, needed=jnp.int32(larger.capacity)).overflowed == np.False_


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


def test_few_bodies_visit_all_pairs():
    assert rounds_at_start(("sphere",) * 63) == 0 < rounds_at_start(("sphere",) * 63 + ("disk",))
    assert rounds_at_start(("sphere",) * 60 + ("box",)) == rounds_at_start(("box",) * 99, 0) == 0
    assert rounds_at_start(("sphere",) * 64 + ("box",)) > 0
    assert rounds_at_start(("box",) * 4, 8) == 8
