"""Relaxations of structures of different sizes in one sweep against each by itself."""

import ase.build
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.molecular.structures import from_atoms, write_extended_xyz

PARAMETERS = {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0, "pressure": 0.01, "member": 0.0}


def silicon(repeats, missing):
    atoms = ase.build.bulk("Si", a=5.43, cubic=True) * repeats
    del atoms[:missing]
    atoms.rattle(0.05, seed=len(atoms))
    return from_atoms(atoms)


TEXT = write_extended_xyz([silicon((1, 1, 1), 0), silicon((2, 1, 1), 1)])


def made(frame):
    return molecular.system(
        particles={"Si": {}},
        interactions=[{"potential": "stillinger_weber"}],
        start={"structure": TEXT, "frame": frame},
        relax={"force_tolerance": 1e-9, "cell": True, "pressure": "pressure"},
        parameters=PARAMETERS,
        units="metal",
    )


def test_minima_cells_and_implicit_derivatives_are_those_of_each_structure_by_itself(x64):
    every = made("member")
    swept = simkit.sweep(every, {"member": [0.0, 1.0]}, steps=400, every=400)
    assert set(swept["status"].values.ravel()) == {"converged"}
    for member, count in enumerate((8, 15)):
        alone = simkit.run(made(member), steps=400, every=400)
        one = swept.sel(member=member).isel(seed=0)
        assert float(one["particles"][-1]) == count
        for name, tolerance in (("energy_per_particle", 1e-12), ("volume", 1e-7)):
            assert float(one[name][-1]) == pytest.approx(float(alone[name][-1]), rel=tolerance)
        np.testing.assert_allclose(one["position"][:count], alone["position"][-1], atol=1e-6)
        assert np.isnan(one["position"][count:]).all()
    names, objective = ["sigma", "pressure"], {"objective": "volume", "steps": 400}
    _, slopes = simkit.value_and_grad(every, names, **objective, member=1.0)
    _, own = simkit.value_and_grad(made(1), names, **objective)
    for name in names:
        assert float(slopes[name]) == pytest.approx(float(own[name]), rel=1e-6)
