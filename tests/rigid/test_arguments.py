"""Arguments of methods and factories that are not numbers in their range are refused in one line."""

import re

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid import (
    Compliant,
    Events,
    Impulses,
    Jointed,
    billiards_break,
    box_stack,
    compliant_bounce,
    falling_pile,
    mjcf,
    newtons_cradle,
    steered_puck,
    system_identification,
)
from tests.tables import every

WRONG = [
    (Impulses, {"sweeps": 2.5}, "sweeps = 2.5 is not an integer of at least 1; write one"),
    (Impulses, {"impacts": "4"}, "impacts = '4' is not an integer of at least 0"),
    (Impulses, {"correction": True}, "correction = true is not a finite number; write one"),
    (Events, {"impacts": True}, "impacts = true is not an integer of at least 1"),
    (Events, {"reach": "1"}, "reach = '1' is not a finite number; write one"),
    (Compliant, {"substeps": 0}, "substeps = 0 is not an integer of at least 1"),
    (Compliant, {"creep_speed": float("nan")}, "creep_speed = nan is not a finite number"),
    (Jointed, {"iterations": 2.5}, "iterations = 2.5 is not an integer of at least 1"),
    (Jointed, {"order": [2]}, "order = [2] is not available; choose 2 or 4"),
    (box_stack, {"boxes": 4097}, "boxes = 4097 is not an integer of 1 to 4096; write one"),
    (falling_pile, {"spheres": -1}, "spheres = -1 is not an integer of 0 to 4096"),
    (newtons_cradle, {"balls": 3.0}, "balls = 3.0 is not an integer of 2 to 20"),
    (newtons_cradle, {"incoming": 5}, "incoming = 5 is not an integer of 1 to 4; write one"),
    (billiards_break, {"rows": None}, "rows = None is not an integer of 1 to 5"),
    (compliant_bounce, {"balls": 101}, "balls = 101 is not an integer of 1 to 100"),
    (steered_puck, {"knots": 1}, "knots = 1 is not an integer of 2 to 1000"),
    (system_identification, {"true_restitution": 1.5}, "true_restitution = 1.5 is above its upper bound 1"),
    (box_stack, {"boxs": 3}, "boxs is not a known key; did you mean 'boxes'?"),
    (mjcf, {"model": "brax:ant.xml", "substeps": 0.5}, "substeps = 0.5 is not an integer of at least 1"),
]


@every(("make", "given", "message"), WRONG, ids=[message.split(" is ")[0] for *_, message in WRONG])
def test_a_wrong_argument_is_refused_by_name_with_the_allowed_range(make, given, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}") as refused:
        make(**given)
    assert "\n" not in str(refused.value)


def test_numbers_of_numpy_are_accepted():
    assert Impulses(sweeps=np.int64(4), correction=np.float32(0.5)).sweeps == 4
    assert Events(reach=np.float64(2.0)).reach == 2
