"""All pairs of a collection, in the order of the rounds."""

import numpy as np
import pytest

from simkit.rigid.collision.pairs import contacts
from simkit.rigid.collision.rounds import rounds
from simkit.rigid.collision.slots import FAR
from tests.rigid.collision.shapes import array, nearest
from tests.rigid.collision.test_pairs import KINDS, compiled, scene

pytestmark = pytest.mark.usefixtures("x64")


def test_pairs_are_in_the_order_of_the_rounds_with_normals_towards_the_first():
    bodies, motion, shapes = scene(KINDS, 1)
    position, normal, gap = array(compiled(contacts)(bodies, motion))
    first, second = (side.ravel() for side in rounds(len(KINDS)))
    assert gap.shape == (4, 28) and position.shape == (4, 28, 3)
    assert np.abs(np.linalg.norm(normal, axis=-1) - 1).max() < 1e-12
    checked = 0
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        if max(i, j) == len(KINDS):
            assert gap[:, k].min() == FAR
            continue
        distance, core, direction = nearest(shapes[i], shapes[j])
        slot = gap[:, k].argmin()
        slots = {frozenset(("box",)): 4, frozenset(("capsule",)): 2, frozenset(("box", "capsule")): 2}
        used = slots.get(frozenset((KINDS[i], KINDS[j])), 1)
        assert np.all(gap[used:, k] == FAR)
        if core > 1e-6:
            # The separation of boxes is at least the distance over sqrt(3), and its axis within 55 degrees of it.
            assert min(distance, distance / np.sqrt(3)) - 0.01 < gap[slot, k] < distance + 0.01
            assert normal[slot, k] @ direction > 0.57
            checked += 1
    assert checked > 15
