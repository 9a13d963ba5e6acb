"""Near pairs of many bodies: complete, colored, carried over, and larger where they do not fit."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.near_pairs import build, hulls, rounds_at_start
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


def test_every_near_pair_is_listed_once(listed):
    place, radius, _, near = listed
    found, number = pairs_of(near)
    assert number == len(found) and found == wanted(place, radius, MARGIN)


def test_no_body_has_two_partners_in_a_round(listed):
    near = listed[3]
    for both in np.concatenate([near.first, near.second], axis=1):
        assert len(set(both.tolist())) == len(both)


def test_more_rounds_hold_the_same_pairs(listed):
    near = listed[3]
    larger = near.resized(near.capacity + 8)
    assert pairs_of(larger) == pairs_of(near)
    assert len(set(np.asarray(larger.first[-1]).tolist())) == near.first.shape[1]
    assert dataclasses.replace(larger, needed=jnp.int32(larger.capacity)).overflowed == np.False_


def test_few_bodies_visit_all_pairs():
    assert rounds_at_start(("sphere",) * 63) == 0 < rounds_at_start(("sphere",) * 63 + ("disk",))
    assert rounds_at_start(("sphere",) * 60 + ("box",)) == rounds_at_start(("box",) * 99, 0) == 0
    assert rounds_at_start(("sphere",) * 64 + ("box",)) > 0
    assert rounds_at_start(("box",) * 4, 8) == 8
