"""Relaxations of structures of different sizes in one sweep against each by itself."""

import ase
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.molecular.structures import from_atoms, write_extended_xyz

SITES = 1.12 * np.array(list(np.ndindex(2, 2, 2))) + 0.06 * np.sin(np.arange(24)).reshape(8, 3)
TEXT = write_extended_xyz([from_atoms(ase.Atoms("Ar" * count, SITES[:count])) for count in (7, 5)])


def made(frame):
    return molecular.system(
        particles={"Ar": {}},
        interactions=[{"potential": "lennard_jones", "cutoff": 6.0}],
        start={"structure": TEXT, "frame": frame},
        relax={"force_tolerance": 1e-11},
        parameters={"epsilon": 1.0, "sigma": 1.0, "member": 0.0},
    )


def test_minima_and_implicit_derivatives_are_those_of_a_structure_by_itself(x64):
    every, alone = made("member"), made(1)
    swept = simkit.sweep(every, {"member": [0.0, 1.0]}, steps=400, every=400)
    assert set(swept["status"].values.ravel()) == {"converged"}
    assert swept["particles"].values[:, 0, -1].tolist() == [7, 5]
    one, own = swept.sel(member=1).isel(seed=0), simkit.run(alone, steps=400, every=400)
    assert float(one["energy"][-1]) == pytest.approx(float(own["energy"][-1]), rel=1e-12)
    np.testing.assert_allclose(one["position"][:5], own["position"][-1], atol=1e-9)
    assert np.isnan(one["position"][5:]).all()
    slopes = [
        simkit.value_and_grad(each, "epsilon", objective="energy", steps=400, **values)[1]
        for each, values in ((every, {"member": 1.0}), (alone, {}))
    ]
    assert float(slopes[0]["epsilon"]) == pytest.approx(float(slopes[1]["epsilon"]), rel=1e-9)
