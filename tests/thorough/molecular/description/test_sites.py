"""Implicit derivatives of relaxed molecules with virtual sites."""

import pytest

import simkit
from simkit.molecular import system
from tests.molecular.description.test_sites import four_sites
from tests.molecular.resting import at_rest


def test_a_relaxation_with_virtual_sites_has_its_implicit_derivative(x64):
    relaxed = system(**four_sites(relax={"force_tolerance": 1e-11}))
    _, slope = simkit.value_and_grad(relaxed, "constant", objective="energy", steps=1500)
    ends = [at_rest(relaxed, relaxed.with_params(constant=value).params)[1]["energy"] for value in (1.999, 2.001)]
    assert float(slope["constant"]) == pytest.approx((ends[1] - ends[0]) / 0.002, rel=1e-6)
