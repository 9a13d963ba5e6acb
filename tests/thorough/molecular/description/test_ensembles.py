"""Thermostats and barostat through a scenario file: the canonical energies, and volumes at constant pressure."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.molecular.dynamics.baths import slope

pytestmark = pytest.mark.usefixtures("x64")

FILE = """
name = "gas"
title = "Gas"
summary = "A gas of disks in a bath."
simulation = "molecular.system"

[config]
particles.A = {{ mass = 1 }}
start = {{ lattice = "square", repeats = [4, 4] }}
cell.density = 0.3
task = "dynamics"

[config.dynamics]
method = "{method}"
{rate}
time_step = 0.01
temperature = "temperature"
pressure = "pressure"
barostat_time = 1
compressibility = "compressibility"

[[config.interactions]]
energy = "4*((1/r)**12 - (1/r)**6)"
cutoff = 1.8

[params]
temperature = {{ default = 1.5, bounds = [0.1, 10.0], doc = "of the bath" }}
pressure = {{ default = 0.4, bounds = [0.0, 10.0], doc = "of the barostat" }}
compressibility = {{ default = 1.5, bounds = [0.0, 10.0], doc = "at zero the cell stays as it is" }}

[run]
steps = 100
every = 10
precision = "float64"

[render]
view = "particles"
quantity = "speed"

[objectives.temperature]
doc = "temperature"
"""
RATES = {"langevin": "friction = 2", "nose_hoover": "thermostat_time = 0.2", "bussi": "thermostat_time = 0.2"}
TEMPERATURES, PRESSURES = (1.1, 1.5), (0.4, 0.55)
MEMBERS, SAMPLES, APART, SKIPPED = 32, 100, 50, 20


@functools.cache
def sampled(method, folder):
    """Return diagnostics, (4 kinds of runs, members, samples): two temperatures in one cell, then two pressures."""
    path = folder / f"{method}.toml"
    path.write_text(FILE.format(method=method, rate=RATES[method]))
    simulation = build(load(path))
    many = ensemble(simulation, ["temperature", "pressure", "compressibility"])
    kinds = {
        "temperature": [*TEMPERATURES, 1.5, 1.5],
        "pressure": [1.0, 1.0, *PRESSURES],
        "compressibility": [0.0, 0.0, 1.5, 1.5],
    }
    params = {**simulation.params, **{name: jnp.repeat(jnp.asarray(v), MEMBERS) for name, v in kinds.items()}}
    keys = jax.random.split(jax.random.key(1), 4 * MEMBERS)
    _, _, found = jax.jit(trajectory(many, SAMPLES * APART, APART))(params, keys)
    return {name: np.asarray(value)[SKIPPED:].T.reshape(4, MEMBERS, -1) for name, value in found.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def ratio(low, high):
    """Return the slope of the logarithm of the ratio of two distributions, and its standard error."""
    without = [slope(np.delete(low, m, 0), np.delete(high, m, 0)) for m in range(MEMBERS)]
    return slope(low, high), np.std(without) * (MEMBERS - 1) ** 0.5


@pytest.mark.parametrize("method", RATES)
def test_energies_of_a_file_at_two_temperatures_have_the_ratio_of_boltzmann_factors(method, folder):
    found = sampled(method, folder)
    np.testing.assert_allclose(found["volume"][:2], 16 / 0.3, rtol=1e-12)
    for kind, wanted in enumerate((*TEMPERATURES, 1.5, 1.5)):
        of_members = found["temperature"][kind].mean(axis=1)
        error = of_members.std() / MEMBERS**0.5
        assert error < 0.01 * wanted
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)
    expected = 1 / TEMPERATURES[0] - 1 / TEMPERATURES[1]
    got, error = ratio(*found["energy"][:2])
    assert error < 0.05 * expected
    assert got == pytest.approx(expected, abs=3.5 * error)


@pytest.mark.parametrize("method", RATES)
def test_pressure_of_a_file_is_held_and_volumes_have_the_ratio_of_boltzmann_factors(method, folder):
    found = sampled(method, folder)
    for wanted, values in zip(PRESSURES, found["pressure"][2:], strict=True):
        of_members = values.mean(axis=1)
        error = of_members.std() / MEMBERS**0.5
        assert error < 0.05 * wanted
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)
    expected = (PRESSURES[0] - PRESSURES[1]) / 1.5
    got, error = ratio(*found["volume"][2:])
    assert error < 0.15 * -expected
    assert got == pytest.approx(expected, abs=3.5 * error)


def test_atoms_of_every_size_and_density_within_their_bounds_are_clear():
    scenario = load("nose_hoover")
    made = build(scenario)
    corners = itertools.product(scenario.parameters["sigma"].bounds, scenario.parameters["density"].bounds)
    for sigma, density in corners:
        made.check_values({**made.params, "sigma": sigma, "density": density}, jax.random.key(0))
