"""Random starting positions keep their separation from each other and from walls."""

import jax
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.errors import UserError
from simkit.molecular.composed.random_places import RandomPlaces

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


@pytest.mark.parametrize(
    ("frame", "periodic", "room"),
    [
        ([4.0, 3.0], (True, True), 12.0),
        ([4.0, 3.0], (True, False), 4.0 * 4.0),
        ([[4.0, 0.0], [1.0, 3.0]], (True, True), 12.0),
        ([[4.0, 0.0], [3.0, 3.0]], (True, False), 4.0 * 4.0),
        ([4.0, 3.0, 2.0], (False, False, True), 5.0 * 4.0 * 2.0),
    ],
)
def test_the_part_of_a_cell_that_balls_fill(frame, periodic, room):
    places = RandomPlaces(0.5, np.array([2.0, 1.0, 1.0]), np.array(frame), periodic, is_ball=False)
    balls = np.pi * (1 / 4 + 2 / 16) if len(periodic) == 2 else 4 / 3 * np.pi * (1 / 8 + 2 / 64)
    assert places.filled() == pytest.approx(balls / room)


def test_the_part_of_a_ball_that_balls_fill():
    places = RandomPlaces(0.5, np.ones(5), np.array([3.0, 3.0, 3.0]), (False,) * 3, is_ball=True)
    assert places.filled() == pytest.approx(5 * (0.25 / 1.75) ** 3)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_positions_keep_away_from_walls_by_their_diameter(x64, seed):
    made = fluid([LOWER, UPPER])
    position = np.asarray(made.init(made.params, jax.random.key(seed)).position)
    diameter = np.where(np.arange(40) < 34, 1.0, 0.5)
    assert (position[:, 1] >= 0.9 * diameter).all()
    assert (HEIGHT - position[:, 1] >= 0.9 * diameter).all()
    # The particles fill the room that is left: the small ones reach nearer to the walls.
    assert np.ptp(position[:, 1]) > HEIGHT - 2.5


def test_a_wall_keeps_only_its_own_species_away(x64):
    made = fluid([LOWER, {**UPPER, "distance": "y - height/2", "on": ["B"]}])
    height = np.asarray(made.init(made.params, jax.random.key(0)).position)[:, 1]
    assert (height[34:] >= HEIGHT / 2 + 0.45).all()
    assert (height[:34] < HEIGHT / 2).any()


def test_dynamics_between_walls_from_random_positions_keep_their_energy(x64):
    run = simkit.run(fluid([LOWER, UPPER], small=1.0), steps=200, every=100)
    total = run["energy"].values
    assert np.isfinite(total).all()
    assert abs(total[-1] / total[0] - 1) < 1e-3
    y = run["position"].values[..., 1]
    assert ((y > 0) & (y < HEIGHT)).all()


def test_walls_without_room_between_them_are_refused(x64):
    made = fluid([LOWER, {**UPPER, "distance": "1.2 - y"}])
    with pytest.raises(UserError, match=r"start\.separation = 0\.9 .* two, or one and a wall, are 0\.\d+ diameters"):
        simkit.run(made, steps=1)
