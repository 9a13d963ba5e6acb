"""Canonical distribution of every thermostat: energies at two temperatures, kinetic energies, virials."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.molecular.interactions.user_energy import user_energy
from tests.molecular.dynamics.baths import THERMOSTATS, VALUES
from tests.molecular.dynamics.moving import floats
from tests.physics.test_canonical_ensemble import MEMBERS, TEMPERATURES, sampled


def slope(low, high):
    """Return the slope of ln P_high / P_low over the energy, of greatest likelihood.

    Reference: Shirts, J. Chem. Theory Comput. 9, 909 (2013), doi:10.1021/ct300688p.
    """
    energy = np.concatenate([low.ravel(), high.ravel()])
    energy = energy - energy.mean()
    is_high = np.repeat([0.0, 1.0], [low.size, high.size])
    columns, found = np.stack([np.ones_like(energy), energy]), np.zeros(2)
    for _ in range(20):
        expected = 1 / (1 + np.exp(-found @ columns))
        curvature = (columns * (expected * (1 - expected))) @ columns.T
        found = found + np.linalg.solve(curvature, columns @ (is_high - expected))
    return found[1]


def slope_and_error(energy):
    """Return the slope and its standard error, by leaving out one pair of members after another."""
    low, high = energy
    without = [slope(np.delete(low, m, 0), np.delete(high, m, 0)) for m in range(MEMBERS)]
    return slope(low, high), np.std(without) * (MEMBERS - 1) ** 0.5


@pytest.mark.parametrize("name", THERMOSTATS)
def test_energies_at_two_temperatures_have_the_ratio_of_boltzmann_factors(x64, name):
    found, error = slope_and_error(sampled(name)[0])
    expected = 1 / TEMPERATURES[0] - 1 / TEMPERATURES[1]
    # A test of some power: within 5 %.
    assert error < 0.05 * expected
    assert found == pytest.approx(expected, abs=3 * error)


def test_the_ratio_detects_a_thermostat_that_is_not_canonical(x64):
    found, error = slope_and_error(sampled("weak_coupling")[0])
    assert found - 1 / TEMPERATURES[0] + 1 / TEMPERATURES[1] > 5 * error


@pytest.mark.parametrize("name", THERMOSTATS)
def test_coupled_oscillators_share_the_energy_equally(x64, name):
    # One particle in x^2 / 2 + y^2 + x^2 y^2 / 2: the mean of x dU/dx is T for each coordinate, of m v^2 too.
    def energy(position, cell, params):
        x, y = position[:, 0], position[:, 1]
        return jnp.sum(x**2 / 2 + y**2 + x**2 * y**2 / 2)

    options = {} if name == "langevin" else {"isolated": False}
    temperature, members = 0.8, 256
    simulation = THERMOSTATS[name](
        user_energy(energy),
        lambda params, key: jax.random.normal(key, (1, 2), params["mass"].dtype),
        params=floats(**VALUES | {"temperature": temperature, "time_step": 0.05, "thermostat_time": 1.0, "mass": 1.3}),
        **options,
    )
    many = ensemble(simulation)
    _, seen, _ = jax.jit(trajectory(many, 4000, 20))(simulation.params, jax.random.split(jax.random.key(2), members))
    x, y = np.moveaxis(np.asarray(seen["position"])[100:, :, 0], -1, 0)
    v = np.asarray(seen["velocity"])[100:, :, 0]
    virials = [x * (x + x * y**2), y * (2 * y + y * x**2), 1.3 * v[..., 0] ** 2, 1.3 * v[..., 1] ** 2]
    for virial in virials:
        of_members = virial.mean(axis=0)
        error = of_members.std() / members**0.5
        assert error < 0.03 * temperature
        # Velocities at whole steps are too slow by h^2 U'' / 4 m, with U'' of 3 on average: 0.15 %.
        assert of_members.mean() == pytest.approx(temperature, abs=3.5 * error + 0.003 * temperature)
