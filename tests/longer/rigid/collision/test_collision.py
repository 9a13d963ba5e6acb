"""Points of contact of shapes, and bodies that overlap at the start."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.rigid.collision.shapes import COUNT, Shapes, array, touching

pytestmark = pytest.mark.usefixtures("x64")


def test_edges_that_cross_touch_where_they_are_nearest():
    # Two cubes on their edges, one above the other, turned by a right angle: the edges cross at a known place.
    on_edge = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    across = Rotation.from_euler("y", 45, degrees=True).as_matrix()
    height = np.sqrt(0.5)
    halves, radius = np.full((COUNT, 3), 0.5), np.zeros(COUNT)
    shift, gap = np.random.default_rng(0).uniform(-0.4, 0.4, (COUNT, 2)), np.linspace(-0.1, 0.1, COUNT)
    lower = Shapes(np.zeros((COUNT, 3)), np.broadcast_to(on_edge, (COUNT, 3, 3)), halves, radius)
    center = np.column_stack([shift, 2 * height + gap])
    upper = Shapes(center, np.broadcast_to(across, (COUNT, 3, 3)), halves, radius)
    position, normal, found = array(touching("box", "box")(upper.placed(), lower.placed()))
    assert np.abs(found[0] - gap).max() < 1e-12
    assert found[1:].min() > 1e5
    assert np.abs(normal[0] - [0, 0, 1]).max() < 1e-12
    # The lower edge runs along x at y = 0, the upper along y at x = shift.
    expected = np.column_stack([shift[:, 0], np.zeros(COUNT), height + gap / 2])
    assert np.abs(position[0] - expected).max() < 1e-12
