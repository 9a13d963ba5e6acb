"""Particles without neighbors in a relaxed cluster are counted, and told by the report of a run."""

import warnings

import numpy as np
import pytest

import simkit
from simkit.molecular import system

TETRAHEDRON = 0.8 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(2)


def relaxed(positions):
    simulation = system(
        particles={"A": {}},
        start={"positions": positions},
        interactions=[{"potential": "lennard_jones", "cutoff": "2.5*sigma"}],
        relax={"force_tolerance": 1e-5},
        parameters={"epsilon": 1.0, "sigma": 1.0},
    )
    return simkit.run(simulation, steps=200, every=200)


def test_an_atom_out_of_reach_of_a_cluster_is_counted_and_told():
    with pytest.warns(
        UserWarning, match=r"converged; .*; unbound = 1: particles left the cluster, and little or nothing"
    ):
        lost = relaxed([*TETRAHEDRON, [6.0, 0, 0]])
    assert lost["unbound"][-1] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound = relaxed([*TETRAHEDRON, [1.6, 0, 0]])
    assert bound["unbound"][-1] == 0
