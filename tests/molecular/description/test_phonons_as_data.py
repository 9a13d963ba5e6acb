"""Phonons of systems described as data: a lattice of springs in closed form, speeds of sound, and what is refused."""

import pytest

from simkit.errors import UserError
from simkit.molecular import system

# One particle; the second vector is longer than it need be, so that the cell has other vectors than the file.
CORNERS = {"G": [0, 0], "M": [0.5, 1.0], "K": [1 / 3, 5 / 6]}
SPRINGS = {
    "particles": {"A": {"mass": 1.5}},
    "start": {"positions": [[0.2, 0.1]]},
    "cell": {"vectors": [[1, 0], ["3/2", "sqrt(3)/2"]]},
    "interactions": [{"energy": "k/2*(r - 1)**2", "cutoff": 1.3, "ending": "truncate"}],
    "relax": {"scale": {"length": 1, "stiffness": "k"}},
    "phonons": {
        "corners": CORNERS,
        "path": ["G", "M", "K", "G"],
        "points": 4,
        "density_of_states": {"mesh": [12, 12], "largest": 6, "bins": 121, "width": 0.1},
    },
    "parameters": {"k": 4.0},
}


def test_phonons_that_a_system_lacks_are_refused_with_the_key():
    frozen = {"particles": {"A": {"mass": 1.5, "frozen": True}}}
    phonons = SPRINGS["phonons"]
    for changed, message in (
        ({"cell": None, "start": {"positions": [[0, 0], [1, 0]]}}, "need a cell that repeats"),
        (frozen, "all move"),
        ({"fields": [{"energy": "cos(2*pi*x)"}]}, "without fields"),
        ({"task": "dynamics", "relax": None, "dynamics": {"time_step": 0.1}}, 'task "relax"'),
        ({"phonons": {**phonons, "path": ["G", "Q"]}}, "path = 'Q' is unknown"),
        ({"phonons": {**phonons, "path": ["G"]}}, "fewer than two corners"),
        ({"phonons": {**phonons, "repeats": [2, 2, 2]}}, "repeats has 3 numbers in 2 dimensions"),
        ({"phonons": {**phonons, "repeats": [1000, 1000]}}, "more than 50000"),
    ):
        with pytest.raises(UserError, match=message):
            system(**{**SPRINGS, **changed})
