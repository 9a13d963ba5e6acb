"""A scene in Python, written in other ways."""

import numpy as np

from simkit.rigid import Impulses, Vector, box, floor, gravity, repeat
from tests.rigid.test_own_scenes import PLACES, start_at, started


def test_the_same_scene_written_in_other_ways_is_the_same():
    cube = box(1.0, 0.2)
    expected, missed = started({}), []
    for name, changed in {
        "rows": {"start": start_at(PLACES)},
        "an array": {"start": start_at(np.array(PLACES))},
        "vectors of lists": {"start": start_at(Vector([0.0, 0.0], [0.0, 0.1], [0.5, 2.0]))},
        "one velocity for all": {"start": start_at(PLACES, velocity=[0.0, 0.0, 0.0])},
        "rows of orientations": {"start": start_at(PLACES, orientation=[[1, 0, 0, 0]] * 2)},
        "one orientation for all": {"start": start_at(PLACES, orientation=[1, 0, 0, 0])},
        "one length": {"bodies": lambda params: repeat(cube, 2)},
        "a list of bodies": {"bodies": [cube, cube]},
        "bodies without a function": {"bodies": repeat(cube, 2)},
        "the name of a method": {"dynamics": "Impulses"},
        "its class": {"dynamics": Impulses},
        "planes without a function": {"planes": floor()},
        "a list of planes": {"planes": [floor()]},
        "one load": {"loads": gravity()},
    }.items():
        found = started(changed)
        missed += [name for key in expected if not np.array_equal(expected[key], found[key])]
    assert not missed
