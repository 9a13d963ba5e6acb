"""Crystals of few particles: charges in one unit cell, cells that shrink below their images, and twisted molecules."""

import numpy as np
import pytest

import simkit
from simkit.jobs.derivatives import compare
from simkit.molecular import system
from simkit.scenario.made_in_python import load

ONE_CELL = {"config.start.repeats": [1, 1, 1], "config.particles.Na.count": 4, "config.particles.Cl.count": 4}


def test_a_salt_of_one_unit_cell_has_the_elastic_constants_of_its_closed_form():
    scenario = load("salt_crystal")
    data = simkit.run(scenario, **ONE_CELL)
    for each in scenario.validations:
        if each.derivative is None:
            tolerance = each.tolerance * (abs(each.expected) or 1)
            assert float(data[each.quantity][-1]) == pytest.approx(each.expected, abs=tolerance), each.quantity


def test_a_cell_that_shrinks_below_the_images_of_its_start_says_so(x64):
    crystal = system(
        particles={"A": {}},
        start={"lattice": "face_centered_cubic", "repeats": [1, 1, 1], "spacing": "spacing"},
        interactions=[{"potential": "lennard_jones", "cutoff": 3.2}],
        relax={"cell": True, "pressure": "pressure", "force_tolerance": 1e-8},
        parameters={"pressure": 0.0, "spacing": 1.14, "epsilon": 1.0, "sigma": 1.0},
    )
    with pytest.warns(UserWarning, match="less than twice the cut-off"):
        assert simkit.run(crystal, steps=200, every=50).attrs["status"] == "cell_too_small"


def test_the_shape_of_a_twisted_molecule_has_the_derivatives_of_relaxing_it_anew(x64):
    # Bonds, angles, dihedrals and pairs each pull elsewhere, so that every angle of the minimum depends on all.
    molecule = {
        "atoms": {"C": 5},
        "bonds": [{"potential": "harmonic", "values": {"stiffness": 100, "length": "length"}, "members": "chain"}],
        "angles": [{"potential": "harmonic", "values": {"stiffness": 20, "angle": "bend"}}],
        "dihedrals": [{"potential": "periodic", "periodicity": 3, "values": {"strength": 0.7, "phase": "phase"}}],
        "exclude": "angles",
        "coordinates": [[0, 0, 0], [1, 0, 0], [1.4, 0.9, 0], [2.4, 1.0, 0.3], [2.7, 1.9, 0.6]],
    }
    simulation = system(
        particles={"C": {}},
        molecules={"chain": molecule},
        start={"separation": 0.1},
        cell={"lengths": [12, 12, 12]},
        interactions=[{"potential": "lennard_jones", "cutoff": 5.0}],
        relax={"force_tolerance": 1e-12},
        observed=["molecules"],
        parameters={"length": 1.0, "bend": 1.9, "phase": 1.5, "epsilon": 1.0, "sigma": 1.7},
    )
    names = ["length", "bend", "phase", "epsilon", "sigma"]
    checked = compare(load(simulation, {"steps": 2000}), names, "mean_square_end_to_end", "reverse")
    assert np.all([abs(slope) > 1e-4 for slope in checked.derivative.values()])
    assert max(checked.relative_difference.values()) < 1e-6, checked
