"""The least force of two fingers that hold a box."""

import pytest

import simkit


def test_shipped_optimization_finds_the_least_force_that_holds_the_box():
    """Coulomb's law: m g / (2 mu). Slightly more pays, since it shortens the slip of the first time steps."""
    found = simkit.optimize("grasp", "squeeze")
    assert float(found["best_squeeze"][-1]) == pytest.approx(9.81, rel=0.01)
