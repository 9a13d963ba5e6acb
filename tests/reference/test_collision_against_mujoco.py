"""Depths and contact points against MuJoCo's collision detection."""

import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simkit.rigid.collision.boxes import PREFERENCE, WIDER
from simkit.rigid.collision.capsules import CROSSING
from tests.rigid.collision.shapes import COUNT, array, random_shapes, touching
from tests.rigid.collision.test_collision import stacked_boxes

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(scope="module")
def mujoco():
    return pytest.importorskip("mujoco")


def scene(mujoco, shapes, k):
    """Return a model and data of one pair of shapes at given positions."""
    bodies = []
    for one in (shapes[0][k], shapes[1][k]):
        kind = "sphere" if not one.halves.any() else "capsule" if one.radius > 0 else "box"
        size = {"sphere": [one.radius], "capsule": [one.radius, one.halves[2]], "box": one.halves}[kind]
        x, y, z, w = Rotation.from_matrix(one.turning).as_quat()
        place, turning = " ".join(map(repr, map(float, one.center))), " ".join(map(repr, map(float, (w, x, y, z))))
        sizes = " ".join(repr(float(length)) for length in size)
        geometry = f'<geom type="{kind}" size="{sizes}" margin="0.01"/>'
        bodies.append(f'<body pos="{place}" quat="{turning}"><freejoint/>{geometry}</body>')
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@functools.cache
def pairs(first, second):
    shapes = random_shapes(first, 60, 0.6), random_shapes(second, 61, 0.6)
    return shapes, array(touching(first, second)(*(one.placed() for one in shapes)))


@pytest.mark.parametrize("pair", [("sphere", "box"), ("capsule", "capsule"), ("box", "box")], ids="-".join)
def test_depths_are_those_of_mujoco(mujoco, pair):
    shapes, (_, _, gap) = pairs(*pair)
    differences = []
    for k in range(COUNT):
        model, data = scene(mujoco, shapes, k)
        distance = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, np.zeros(6))
        if distance < 0:
            differences.append(gap[:, k].min() - distance)
    differences = np.abs(differences)
    assert len(differences) > 60
    if pair == ("box", "box"):
        # Faces are preferred to axes that are better by at most 2 % of the smaller half length, 1 m at most.
        assert differences.max() < 2 * PREFERENCE
        assert np.quantile(differences, 0.8) < 1e-12
    elif pair == ("capsule", "capsule"):
        # Capsules nearly parallel touch at two points; radii are below 0.5 m each.
        assert differences.max() < 0.074 * CROSSING
        assert np.quantile(differences, 0.9) < 1e-12
    else:
        assert differences.max() < 1e-12


def test_contact_points_of_faces_are_those_of_mujoco(mujoco):
    upper, lower, _ = stacked_boxes(63, -0.002)
    position, normal, gap = array(touching("box", "box")(upper.placed(), lower.placed()))
    compared = 0
    for k in range(COUNT):
        _, data = scene(mujoco, (upper, lower), k)
        places, depths = data.contact.pos, data.contact.dist
        assert len(places) >= 3
        for slot in range(4):
            away = np.linalg.norm(places - position[slot, k], axis=1)
            # Widening moves or adds corners by 1e-4 of a half length over the sine of the edges' angle.
            compared += away.min() < 100 * WIDER
            assert abs(depths[away.argmin()] - gap[slot, k]) < 1e-9
        # MuJoCo's normal points from the first body to the second, ours to the first.
        assert np.abs(data.contact.frame[:, :3] + normal[0, k]).max() < 1e-9
    assert compared > 0.98 * 4 * COUNT
