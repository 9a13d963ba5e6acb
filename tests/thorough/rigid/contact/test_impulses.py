"""Sequential impulses: propagation of impacts, conservation of momenta, and rest."""

import numpy as np

from simkit.rigid.bodies.bodies import box, sphere
from simkit.rigid.contact.impulses import Impulses
from tests.rigid.contact.scenes import run, scene


def test_a_row_of_touching_balls_transfers_momentum_to_the_last_one(precision):
    balls = 6
    at = [[0.0, 0, 0], *([0.3 + 0.2 * index, 0, 0] for index in range(balls - 1))]
    speeds = [[1.0, 0, 0]] + [[0.0, 0, 0]] * (balls - 1)
    simulation = scene([sphere(1.0, 0.1, 0.0, 1.0)] * balls, at, speeds, weight=0.0, method=Impulses(impacts=balls - 1))
    observed, _ = run(simulation, 100)
    along = np.asarray(observed["velocity"])[-1, :, 0]
    # Positions such as 0.3 + 0.2 k round to gaps of either sign, which changes nothing but the last bits.
    np.testing.assert_allclose(along, [0] * (balls - 1) + [1], rtol=0, atol=1000 * precision)


def test_collisions_conserve_momentum_and_lose_energy(precision):
    simulation = scene(
        [box(1.0, (0.2, 0.3, 0.25), 0.4, 0.5), sphere(0.5, 0.1, 0.4, 0.5)],
        [[-0.3, 0.02, 0.0], [0.3, 0.05, 0]],
        [[2.0, 0, 0], [-2.0, 0, 0]],
        [[1.0, 2.0, 0], [0, 0, 0]],
        weight=0.0,
    )
    _, diagnosed = run(simulation, 150, 30)
    # 150 steps of rounding, on the scale of m v = 2 kg m/s.
    for quantity in ("momentum", "angular_momentum"):
        np.testing.assert_allclose(diagnosed[quantity], diagnosed[quantity][0], rtol=0, atol=150 * 2 * precision)
    energy = np.asarray(diagnosed["energy"])
    assert energy[-1] < 0.9 * energy[0]  # they did collide
    # The splitting of a free rotation keeps energy to about (omega dt)^2 / 12 = 1e-5 of that of rotation, here below
    # a tenth of the whole; 30 roundings between two records.
    assert np.all(np.diff(energy) <= (1e-6 + 30 * precision) * energy[0])
