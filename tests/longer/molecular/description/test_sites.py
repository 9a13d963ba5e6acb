"""Virtual sites of molecules as data: their places, forces on their parents, derivatives, and what is refused."""

import numpy as np

import simkit
from simkit.molecular import system
from tests.molecular.description.test_sites import four_sites


def test_virtual_sites_follow_their_parents_which_get_their_forces(x64):
    simulation = system(**four_sites(task="dynamics", dynamics={"time_step": 0.0025}))
    run = simkit.run(simulation, steps=160, every=80)
    place = run["position"].values.reshape(-1, 2, 4, 3)
    np.testing.assert_allclose(place[:, :, 3], np.einsum("fmas,a->fms", place[:, :, :3], [0.7, 0.2, 0.1]), atol=1e-14)
    energy = run["energy"].values
    assert np.abs(place[-1] - place[0]).max() > 0.05
    assert np.ptp(energy) < 2e-3 * np.ptp(run["potential_energy"].values)
