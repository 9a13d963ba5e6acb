"""Compound bodies: their mass properties, frames, contacts and pictures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import rigid
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import stacked
from simkit.rigid.bodies.motion import to_given
from simkit.rigid.collision.pairs import plane_contacts

pytestmark = pytest.mark.usefixtures("x64")

HALVES = [
    {"shape": "box", "lengths": [0.1, 0.2, 0.3], "position": [-0.05, 0, 0]},
    {"shape": "box", "lengths": [0.1, 0.2, 0.3], "position": [0.05, 0, 0]},
]


def scene(parts, *others, method="impulses", gravity=9.81, **body):
    return rigid.system(
        bodies=[
            {"shape": "plane", "friction": 1.0},
            {"shape": "compound", "name": "whole", "parts": parts, **body},
            *others,
        ],
        gravity=gravity,
        method=method,
        measured=["whole"],
        parameters={"time_step": 0.005},
    )


def test_two_halves_have_the_inertia_of_the_whole_box():
    half, whole = rigid.box(1.0, (0.1, 0.2, 0.3)), rigid.box(2.0, (0.2, 0.2, 0.3))
    # Turned by a quarter turn about x each, so that y and z change places.
    turned = rigid.box(1.0, (0.1, 0.3, 0.2))
    quarter = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    for parts, turns in (([half, half], None), ([half, turned], [[1.0, 0.0, 0.0, 0.0], quarter])):
        made = rigid.compound(parts, [(0.95, 2.0, 3.0), (1.05, 2.0, 3.0)], turns)
        for name in ("mass", "inertia", "half_lengths"):
            np.testing.assert_allclose(
                jax.tree.leaves(getattr(made, name)), jax.tree.leaves(getattr(whole, name)), rtol=1e-14, atol=1e-16
            )


def test_a_compound_is_placed_by_the_frame_of_its_parts():
    parts = [rigid.box(1.0, (0.2, 0.1, 0.1)), rigid.sphere(0.5, 0.1)]
    places = jnp.array([(0.0, 0.0, 0.05), (0.3, 0.1, 0.2)])
    bodies = rigid.gather([rigid.compound(parts, places), rigid.box(1.0, 0.1)])
    turn = [0.8, 0.0, 0.0, 0.6]
    motion = rigid.motion_of(bodies, [(1.0, 2.0, 3.0), (5.0, 0.0, 0.0)], [turn, turn])
    position, orientation = to_given(bodies, motion.position, motion.orientation)
    np.testing.assert_allclose(rigid.vector(jnp.array([[1.0, 2.0, 3.0], [5.0, 0.0, 0.0]])).x, position.x, atol=1e-15)
    np.testing.assert_allclose(stacked(orientation), [turn, turn], atol=1e-15)
    # The ball, 0.2 m above the frame, is 0.1 m above the plane z = 3 + 0.2 - 0.1 - 0.1.
    points = plane_contacts(bodies, motion, rigid.plane((0.0, 0.0, 1.0), 3.0))
    assert points.gap.shape == (5, 2)
    np.testing.assert_allclose(np.sort(points.gap[:, 0]), [0, 0, 0, 0, 0.1], atol=1e-14)


def test_mistakes_with_parts_are_refused():
    ball = rigid.sphere(1.0, 0.1)
    for wrong, word in (([], "no parts"), ([rigid.disk(1.0, 0.1)], "disk"), ([rigid.repeat(ball, 2)], "single")):
        with pytest.raises(UserError, match=word):
            rigid.compound(wrong, [(0.0, 0.0, 0.0)])
    for changes, word in (
        ({}, "parts\\[0\\].mass is missing"),
        ({"mass": 1.0, "parts": [{**HALVES[0], "mass": 1.0}]}, "beside mass of the body"),
        ({"mass": 1.0, "parts": [{"shape": "compound"}]}, "no part of a compound"),
        ({"mass": 1.0, "method": "events"}, "does not support compound"),
        (
            {
                "mass": 1.0,
                "parts": [{"shape": "cylinder", "radius": 0.1, "length": 0.1}],
                "method": {"name": "compliant", "stiffness": 1e5},
            },
            "with a cylinder",
        ),
    ):
        with pytest.raises(UserError, match=word):
            scene(**{"parts": HALVES, **changes})
