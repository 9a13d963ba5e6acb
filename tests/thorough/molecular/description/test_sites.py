"""Molecules with virtual sites: implicit derivatives of relaxed ones, and the momentum of moving ones."""

import numpy as np
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


def test_total_momentum_is_no_thermal_motion_of_molecules_with_virtual_sites_of_any_mass(x64):
    particles = four_sites()["particles"] | {"M": {"charge": -1, "mass": 40.0}}
    method = {"method": "nose_hoover", "thermostat_time": 0.1, "time_step": 0.002, "temperature": 3.0}
    run = simkit.run(system(**four_sites(particles=particles, task="dynamics", dynamics=method)), steps=8, every=8)
    # Six atoms of three components each, less those of the total momentum.
    mass = np.tile([16.0, 1.0, 1.0, 0.0], 2)
    kinetic = np.sum(mass * run["speed"].values ** 2, axis=1) / 2
    np.testing.assert_allclose(run["kinetic_energy"], kinetic, rtol=1e-12)
    # Half a kick adds (omega h)^2 / 4 = 1e-4, with omega^2 = 50 (1 + 1) of two H; 18 degrees would be 17 % less.
    np.testing.assert_allclose(run["temperature"], 2 * kinetic / 15, rtol=1e-3)
    momenta = np.einsum("a,fad->fd", mass, run["velocity"].values)
    np.testing.assert_allclose(momenta, 0, atol=1e-12)
