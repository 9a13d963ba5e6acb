"""Each thermostat's law in small: kinetic energies of a gas, and what Nose and Hoover's chain conserves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.molecular.dynamics import nose_hoover
from tests.molecular.dynamics.baths import THERMOSTATS, ideal_gas
from tests.molecular.dynamics.moving import oscillators
from tests.tables import every


@every("name, freedom", [("langevin", 16), ("bussi", 14)])
def test_kinetic_energies_of_a_gas_from_a_cold_start_are_chi_squared_distributed(x64, name, freedom):
    cold = {"velocity": lambda params, key: 0.3 * jax.random.normal(key, (8, 2))}
    # Without forces the step may be long.
    simulation = ideal_gas(THERMOSTATS[name], 8, cell=[4.0, 4.0], options=cold, time_step=0.25)
    run = jax.jit(trajectory(ensemble(simulation), 8, 8))
    _, _, found = run(simulation.params, jax.random.split(jax.random.key(0), 4096))
    energies = 2 * np.asarray(found["kinetic_energy"][-1]) / 1.5
    # Of the start exp(-8) or exp(-10) is left. All but Langevin's bath conserve the momentum of the center of mass.
    assert stats.kstest(energies, stats.chi2(df=freedom).cdf).pvalue > 0.01
    # The same test tells a temperature that is off by 5 %.
    assert stats.kstest(energies / 1.05, stats.chi2(df=freedom).cdf).pvalue < 0.01


def test_energy_of_chain_and_particles_is_conserved_at_second_order(x64):
    simulation = oscillators(nose_hoover, 4, thermostat_time=0.7, time_step=0.1)
    many = ensemble(simulation, ["time_step"])
    params = {**simulation.params, "time_step": jnp.array([0.1, 0.05])}
    key = jnp.stack([jax.random.key(0)] * 2)
    _, _, found = jax.jit(trajectory(many, 200, 1))(params, key)
    # Over the same time; the bath has moved far more.
    energies = [found["conserved_energy"][:101, 0], found["conserved_energy"][:, 1]]
    assert float(jnp.ptp(found["energy"][:, 1])) > 1
    errors = [float(jnp.abs(energy - energy[0]).max()) for energy in energies]
    assert errors[0] < 0.1
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)
