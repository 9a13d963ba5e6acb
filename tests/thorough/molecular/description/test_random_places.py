"""Random starting positions keep their separation from each other and from walls."""

import jax
import numpy as np

import simkit
from simkit import molecular

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


def test_random_positions_keep_away_from_walls_by_their_diameter(x64):
    made = fluid([LOWER, UPPER])
    start = jax.jit(lambda key: made.init(made.params, key).position)
    diameter = np.where(np.arange(40) < 34, 1.0, 0.5)
    for seed in range(2):
        position = np.asarray(start(jax.random.key(seed)))
        assert (position[:, 1] >= 0.9 * diameter).all(), seed
        assert (HEIGHT - position[:, 1] >= 0.9 * diameter).all(), seed
        # The particles fill the room that is left: the small ones reach nearer to the walls.
        assert np.ptp(position[:, 1]) > HEIGHT - 2.5, seed
