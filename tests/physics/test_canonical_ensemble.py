"""Canonical distribution of every thermostat: kinetic energies, and positions in a harmonic well."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment, trajectory
from simkit.molecular.dynamics import Thermostat, langevin, thermostatted
from simkit.molecular.dynamics.measures import kinetic_energy
from tests.molecular.dynamics.baths import THERMOSTATS, liquid
from tests.molecular.dynamics.moving import oscillators


@functools.cache
def mean_squares(count, settle, steps):
    """Return the compiled ``params -> (<x^2>, <v^2>)`` over many oscillators and the steps after the first ones."""
    simulation = oscillators(langevin, count)

    def run(params, key):
        state = segment(simulation, settle)(simulation.init(params, key), params)

        def step(state, _):
            state = simulation.step(state, params)
            return state, (jnp.mean(state.position**2), jnp.mean(state.velocity**2))

        return jax.tree.map(jnp.mean, jax.lax.scan(step, state, None, length=steps)[1])

    return jax.jit(run)


@pytest.mark.parametrize("step", [0.2, 1.0, 1.9])
def test_positions_in_a_harmonic_well_are_exact_at_any_stable_time_step(x64, step):
    stiffness, mass, temperature = 3.0, 0.75, 0.4
    frequency = (stiffness / mass) ** 0.5
    values = {"stiffness": stiffness, "mass": mass, "temperature": temperature, "friction": 2.0}
    values |= {"time_step": step / frequency}
    params = oscillators(langevin, 1, **values).params
    position, velocity = mean_squares(10_000, 60, 200)(params, jax.random.key(1))
    # 20,000 components, each worth at least ten independent squares in 200 steps (20 relaxation times at the shortest
    # step): sqrt(2 / 200,000) = 0.0032 of relative standard deviation; four of them. The half steps of velocity Verlet
    # with friction around it would give 1 / (1 - (omega h)^2 / 4): 1.01, 1.33 and 10 times as much.
    assert float(position) == pytest.approx(temperature / stiffness, rel=0.013)
    # The velocities pay for it: T / m (1 - (omega h)^2 / 4).
    assert float(velocity) == pytest.approx(temperature / mass * (1 - step**2 / 4), rel=0.013)


TEMPERATURES = (1.2, 1.5)
MEMBERS, SAMPLES, APART, SKIPPED = 32, 120, 40, 20


def weak_coupling(interaction, start, **given):
    """Return Berendsen's thermostat, which holds the temperature and not the canonical distribution.

    Reference: Berendsen et al., J. Chem. Phys. 81, 3684 (1984), doi:10.1063/1.448118.
    """

    def exchange(bath, velocity, moment):
        wanted = moment.freedom.count * moment.temperature / 2
        share = moment.step / moment.params["thermostat_time"]
        return bath, velocity * jnp.sqrt(1 + share * (wanted / kinetic_energy(velocity, moment.mass) - 1))

    bath = Thermostat(needs=("thermostat_time",), start=lambda params, key: (), exchange=exchange)
    return thermostatted(interaction, start, bath, isolated=True, **given)


@functools.cache
def sampled(name):
    """Return total and kinetic energies, (2 temperatures, members, samples)."""
    dynamics = THERMOSTATS.get(name, weak_coupling)
    # Samples are 0.4 apart, twice the thermostat's time.
    simulation = liquid(dynamics, density=0.4, time_step=0.01)
    many = ensemble(simulation, ["temperature"])
    keys = jax.random.split(jax.random.key(1), 2 * MEMBERS)
    params = {**simulation.params, "temperature": jnp.repeat(jnp.asarray(TEMPERATURES), MEMBERS)}
    _, _, found = jax.jit(trajectory(many, SAMPLES * APART, APART))(params, keys)
    return [np.asarray(found[which])[SKIPPED:].T.reshape(2, MEMBERS, -1) for which in ("energy", "kinetic_energy")]


@pytest.mark.parametrize("name", THERMOSTATS)
def test_kinetic_energies_are_chi_squared_distributed(x64, name):
    # Langevin's bath moves the center of mass too.
    freedom = 32 if name == "langevin" else 30
    # Every third sample: 1.2 apart, when less than 1 % of a fluctuation is left.
    kinetic = sampled(name)[1][..., ::3]
    for temperature, values in zip(TEMPERATURES, kinetic, strict=True):
        assert stats.kstest(2 * values.ravel() / temperature, stats.chi2(df=freedom).cdf).pvalue > 0.01
        # The variance is 2 / f of the squared mean; that of 1088 samples scatters by sqrt(2 / 1088) and its kurtosis.
        ratio = values.var() / values.mean() ** 2
        assert ratio == pytest.approx(2 / freedom, rel=3.5 * (2 / values.size * (1 + 6 / freedom)) ** 0.5)
