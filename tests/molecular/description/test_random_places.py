"""Random starting positions keep their separation from each other and from walls."""

import jax
import numpy as np
import pytest

from simkit import molecular
from simkit.errors import UserError
from simkit.molecular.description.starts import RandomPlaces

HEIGHT = 8.0
LOWER = {"distance": "y", "energy": "1/r**9"}
UPPER = {
    "distance": "height - y",
    "potential": "weeks_chandler_andersen",
    "values": {"epsilon": 1, "sigma": 1},
}


def fluid(walls, small=0.5):
    return molecular.system(
        dimension=2,
        particles={"A": {"count": 34}, "B": {"count": 6, "diameter": small}},
        cell={"lengths": [HEIGHT, HEIGHT], "periodic": [True, False]},
        interactions=[{"energy": "1/r**12", "cutoff": 2.5, "ending": "switch"}],
        walls=walls,
        start={"separation": 0.9},
        task="dynamics",
        dynamics={"time_step": 0.002, "temperature": 1},
        parameters={"height": HEIGHT},
    )


FILLED = {
    "cell": ([4.0, 3.0], (True, True), 12.0),
    "strip": ([4.0, 3.0], (True, False), 4.0 * 4.0),
    "oblique cell": ([[4.0, 0.0], [1.0, 3.0]], (True, True), 12.0),
    "oblique strip": ([[4.0, 0.0], [3.0, 3.0]], (True, False), 4.0 * 4.0),
    "tube": ([4.0, 3.0, 2.0], (False, False, True), 5.0 * 4.0 * 2.0),
}


def test_the_part_of_a_cell_or_a_ball_that_balls_fill():
    for case, (frame, periodic, room) in FILLED.items():
        places = RandomPlaces(0.5, np.array([2.0, 1.0, 1.0]), np.array(frame), periodic, is_ball=False)
        balls = np.pi * (1 / 4 + 2 / 16) if len(periodic) == 2 else 4 / 3 * np.pi * (1 / 8 + 2 / 64)
        assert places.filled() == pytest.approx(balls / room), case
    ball = RandomPlaces(0.5, np.ones(5), np.array([3.0, 3.0, 3.0]), (False,) * 3, is_ball=True)
    assert ball.filled() == pytest.approx(5 * (0.25 / 1.75) ** 3)


def test_walls_without_room_between_them_are_refused(x64):
    made = fluid([LOWER, {**UPPER, "distance": "1.2 - y"}])
    with pytest.raises(UserError, match=r"start\.separation = 0\.9 .* two, or one and a wall, are 0\.\d+ diameters"):
        made.check_values(made.params, jax.random.key(0))
