"""Charges of systems described as data."""

import math

import numpy as np

import simkit
from simkit import molecular
from tests.molecular.description.test_charges import ATOMS, energy


def test_methods_for_charges_agree_on_a_crystal(x64):
    madelung, radius, damping = -4 * 1.747564594633182, 4.5, 0.3
    damped = {"potential": "coulomb", "cutoff": radius, "ending": "shift_force", "values": {"damping": damping}}
    cavity = {"potential": "reaction_field", "values": {"radius": radius, "permittivity": 1e9}}
    # What the potential of a charge without its 1 / r is at the charge itself, half of which is no sum over pairs.
    end = math.erfc(damping * radius) / radius
    screen = 2 * end + 2 * damping / math.sqrt(math.pi) * (1 + math.exp(-((damping * radius) ** 2)))
    for method, own, error in (
        ({"potential": "ewald", "tolerance": 1e-12}, 0, 1e-9),
        ({"potential": "particle_mesh_ewald", "tolerance": 1e-6}, 0, 1e-4),
        (damped, screen, 0.01),
        (cavity, 1.5 / radius, 0.3),
    ):
        np.testing.assert_allclose(energy([method]) - 8 * own / 2, madelung, rtol=0, atol=error)


def test_charges_move_in_single_precision_around_one_that_is_frozen():
    particles = {**ATOMS, "C": {"count": 1, "charge": 0.0, "frozen": True}}
    start = {"positions": [*np.indices((2, 2, 2)).reshape(3, -1).T[[0, 3, 5, 6, 1, 2, 4, 7]].tolist(), [0.5, 0.5, 0.5]]}
    moved = molecular.system(
        particles=particles,
        start=start,
        cell={"lengths": [2, 2, 2]},
        interactions=[
            {"potential": "particle_mesh_ewald", "tolerance": 1e-3, "order": 5},
            {"potential": "buckingham", "cutoff": 0.9 * 2**0.5, "values": {"repulsion": 641.5, "rho": 0.1}},
        ],
        task="dynamics",
        dynamics={"method": "langevin", "time_step": 0.002, "temperature": 1e-3, "friction": 1.0},
        parameters={"q": 1.0},
    )
    result = simkit.run(moved, steps=20)
    drift = np.ptp(np.asarray(result["potential_energy"]))
    assert np.isfinite(np.asarray(result["position"])).all() and drift < 0.5
