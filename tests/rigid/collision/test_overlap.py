"""Bodies that overlap at the start are refused in one line."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import box, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.overlap import check_apart
from simkit.rigid.planes import floor
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")
# A cube of 0.2 m and two balls of 0.1 m radius on a floor: all of size 0.1 m.
HEIGHTS, PLACES = (0.1, 0.1, 0.1), (0.0, 0.2, 0.4)


def check(places=PLACES, heights=HEIGHTS):
    bodies = gather([box(1.0, (0.2, 0.2, 0.2)), sphere(1.0, 0.1), sphere(1.0, 0.1)])
    center = np.column_stack([places, (0.0, 0.0, 0.0), heights])
    check_apart(bodies, motion_of(bodies, vector(center)), floor())


def test_overlaps_within_a_thousandth_of_the_size_are_accepted():
    check()
    check(places=(0.0, 0.2 - 0.9e-4, 0.4), heights=(0.1 - 0.9e-4, 0.1, 0.1))


@every(
    ("changes", "message"),
    [
        ({"places": (0.0, 0.2 - 1.2e-4, 0.4)}, r"bodies 0 \(box\) and 1 \(sphere\) overlap by 0.00012 m at the start"),
        ({"places": (0.0, 0.2, 0.35)}, r"bodies 1 \(sphere\) and 2 \(sphere\) overlap by 0.05 m at the start"),
        ({"places": (0.4, 0.2, 0.4)}, r"bodies 0 \(box\) and 2 \(sphere\) overlap by 0.2 m at the start"),
        ({"heights": (0.05, 0.1, 0.1)}, r"body 0 \(box\) and plane 0 overlap by 0.05 m at the start; move them apart"),
    ],
)
def test_bodies_that_overlap_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        check(**changes)
