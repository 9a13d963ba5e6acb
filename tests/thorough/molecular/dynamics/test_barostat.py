"""Barostat: distributions of volume and shape of the cell at constant pressure, with every thermostat."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.molecular.dynamics import langevin, stochastic_cell_rescaling
from simkit.molecular.spaces import lattice_vectors
from tests.molecular.dynamics.baths import THERMOSTATS, crystal, ideal_gas, liquid, slope
from tests.molecular.dynamics.moving import gas_interaction

COUNT, TEMPERATURE, PRESSURE = 8, 0.7, 0.9
ISOTROPIC = {"barostat": stochastic_cell_rescaling()}
ANISOTROPIC = {"barostat": stochastic_cell_rescaling(isotropic=False)}
# The volume relaxes in a time of one.
GAS = {"temperature": TEMPERATURE, "pressure": PRESSURE, "compressibility": 1 / PRESSURE, "time_step": 0.02}


def cells(simulation, members, steps, every, skip, seed=0):
    """Return the cells of many runs after the first frames, (samples, d, d)."""
    many = ensemble(simulation)
    run = jax.jit(trajectory(many, steps, every))
    _, seen, _ = run(simulation.params, jax.random.split(jax.random.key(seed), members))
    cell = np.asarray(seen["cell"])[skip:]
    return cell.reshape(-1, *cell.shape[2:])


@pytest.mark.parametrize("name", THERMOSTATS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_volumes_of_an_ideal_gas_are_gamma_distributed(x64, name, dimension):
    # P(V) ~ V^N exp(-p V / T).
    mean = (COUNT + 1) * TEMPERATURE / PRESSURE
    side = mean ** (1 / dimension)
    gas = ideal_gas(THERMOSTATS[name], COUNT, dimension, cell=np.full(dimension, side), options=ISOTROPIC, **GAS)
    volumes = np.linalg.det(cells(gas, 256, 1600, 200, skip=1))
    exact = stats.gamma(a=COUNT + 1, scale=TEMPERATURE / PRESSURE)
    # 2048 samples, four relaxation times apart (2 % is left of a fluctuation); steps of 0.02 of one make the variance
    # 1 % too large, a third of its standard error.
    assert stats.kstest(volumes, exact.cdf).pvalue > 0.01
    assert volumes.mean() == pytest.approx(exact.mean(), rel=3.5 * exact.std() / mean / len(volumes) ** 0.5)
    spread = 3.5 * ((2 + exact.stats("k")) / len(volumes)) ** 0.5
    assert volumes.var() == pytest.approx(exact.var(), rel=spread + 0.01)
    # The same test tells the gas of one particle fewer, whose momentum would be missing.
    assert stats.kstest(volumes, stats.gamma(a=COUNT, scale=TEMPERATURE / PRESSURE).cdf).pvalue < 0.01


# Scaling all velocities alike does not change their direction, so a gas without collisions keeps the tensor of its
# momenta: only Langevin's bath brings a cell that changes its shape to rest.
def test_sides_on_springs_have_their_distribution(x64):
    # Each side on a spring: P(L) ~ L^N exp(-k (L - L0)^2 / 2 T) for each alone.
    stiffness, length = 6.0, 2.0
    gas = ideal_gas(
        langevin,
        COUNT,
        cell=[2.4, 2.4],
        energy=lambda cell, params: stiffness / 2 * jnp.sum((jnp.diagonal(lattice_vectors(cell)) - length) ** 2),
        options=ANISOTROPIC,
        **GAS | {"pressure": 0.0, "compressibility": 0.3},
    )
    found = cells(gas, 256, 1000, 200, skip=1)
    assert np.all(found[:, 0, 1] == 0)
    grid = np.linspace(0, 6, 4001)
    weight = grid**COUNT * np.exp(-stiffness * (grid - length) ** 2 / (2 * TEMPERATURE))
    below = np.cumsum(weight) / weight.sum()
    for axis in range(2):
        sides = found[:, axis, axis]
        assert stats.kstest(sides, lambda x: np.interp(x, grid, below)).pvalue > 0.01


def test_a_cell_of_any_shape_on_springs_is_wishart_distributed(x64):
    # With E = k tr(C C^T) the metric C C^T has the density det^((N - 2) / 2) exp(-k tr / T) in two dimensions: that of
    # Wishart with N + 1 degrees of freedom and scale T / 2 k.
    stiffness, scale = 1.3, TEMPERATURE / 2.6
    gas = ideal_gas(
        langevin,
        COUNT,
        cell=[[1.5, 0.2], [-0.1, 1.6]],
        energy=lambda cell, params: stiffness * jnp.sum(cell**2),
        options=ANISOTROPIC,
        **GAS | {"pressure": 0.0, "compressibility": 0.5},
    )
    found = cells(gas, 256, 1600, 200, skip=1)
    metric = found @ found.transpose(0, 2, 1)
    marginal = stats.chi2(df=COUNT + 1, scale=scale)
    for axis in range(2):
        assert stats.kstest(metric[:, axis, axis], marginal.cdf).pvalue > 0.01
    # The mean of the entry off the diagonal is zero, its variance that of (N + 1) products.
    off, samples = metric[:, 0, 1], len(metric)
    assert off.mean() == pytest.approx(0, abs=3.5 * (COUNT + 1) ** 0.5 * scale / samples**0.5)
    assert off.var() == pytest.approx((COUNT + 1) * scale**2, rel=3.5 * (3 / samples) ** 0.5 + 0.02)


@pytest.mark.parametrize(("name", "kind"), [*((name, "triclinic") for name in THERMOSTATS), ("nose_hoover", "sides")])
def test_all_components_of_the_pressure_of_a_crystal_are_held(x64, name, kind):
    members, pressure = 24, 0.12
    simulation = crystal(THERMOSTATS[name], kind, pressure=pressure, options=ANISOTROPIC)
    many = ensemble(simulation)
    _, _, found = jax.jit(trajectory(many, 2000, 10))(simulation.params, jax.random.split(jax.random.key(5), members))
    for component, wanted in (("xx", pressure), ("yy", pressure), ("xy", 0.0)):
        if kind == "sides" and component == "xy":
            continue  # an orthorhombic cell does not shear
        of_members = np.asarray(found[f"pressure_{component}"])[50:].mean(axis=0)
        error = of_members.std() / members**0.5
        assert error < 0.015 * pressure
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)


@functools.cache
def held(name):
    """Return pressures, volumes and their own pressures, (2 pressures, members, samples), of a Lennard-Jones gas."""
    simulation = liquid(
        THERMOSTATS[name], density=0.3, options=ISOTROPIC, pressure=0.4, time_step=0.01, compressibility=1.5
    )
    many, members = ensemble(simulation, ["pressure"]), 32
    params = {**simulation.params, "pressure": jnp.repeat(jnp.array([0.4, 0.5]), members)}
    _, _, found = jax.jit(trajectory(many, 8000, 100))(params, jax.random.split(jax.random.key(3), 2 * members))
    return [np.asarray(found[which])[20:].T.reshape(2, members, -1) for which in ("pressure", "volume")]


@pytest.mark.parametrize("name", THERMOSTATS)
def test_pressure_is_held_and_volumes_have_the_ratio_of_boltzmann_factors(x64, name):
    pressure, volume = held(name)
    for wanted, values in zip((0.4, 0.5), pressure, strict=True):
        of_members = values.mean(axis=1)
        error = of_members.std() / len(of_members) ** 0.5
        assert error < 0.02
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)
    low, high = volume
    without = [slope(np.delete(low, m, 0), np.delete(high, m, 0)) for m in range(len(low))]
    error = np.std(without) * (len(low) - 1) ** 0.5
    expected = -0.1 / 1.5
    assert error < 0.08 * -expected
    assert slope(low, high) == pytest.approx(expected, abs=3.5 * error)
    # The fluctuations are those of the compressibility: var V = -T d<V>/dp, by the difference of the two pressures.
    change = (low.mean() - high.mean()) / 0.1
    assert 1.5 * change == pytest.approx(volume.var(axis=(1, 2)).mean(), rel=0.2)


def test_cell_that_shrinks_below_twice_the_cutoff_ends_the_run(x64):
    # 4 x 4 atoms at a cut-off of 2 fit a side of 4.
    simulation = liquid(langevin, options=ISOTROPIC, pressure=60.0, barostat_time=0.1)
    end = jax.jit(segment(simulation, 400))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert int(simulation.status(end, simulation.params)) == Status.CELL_TOO_SMALL


def test_lists_follow_the_cell(x64):
    ends = []
    for method in ("all_pairs", "neighbor_list"):
        simulation = liquid(
            langevin,
            per_side=6,
            density=0.3,
            pressure=4.0,
            barostat_time=0.3,
            options=ISOTROPIC,
            given=gas_interaction(method, capacity=40),
        )
        state = simulation.init(simulation.params, jax.random.key(4))
        ends.append((state, jax.jit(segment(simulation, 100))(state, simulation.params)))
    (start, pairs), (_, listed) = ends
    # The cell has become far smaller, and the list with it.
    assert float(pairs.cell[0]) < 0.9 * float(start.cell[0])
    assert int(listed.neighbors.builds) > 2
    # Sums in another order, in half a unit of time of a chaotic gas.
    np.testing.assert_allclose(listed.position, pairs.position, rtol=0, atol=1e-10)
    np.testing.assert_allclose(listed.cell, pairs.cell, rtol=0, atol=1e-11)
