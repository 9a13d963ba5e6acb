"""Thermostats and barostats: distributions, conserved energies, schedules, derivatives, resumption; also in files."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from simkit import molecular
from simkit.core import gradient
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.molecular.dynamics import bussi, langevin, nose_hoover, stochastic_cell_rescaling, velocity_verlet
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.molecular.dynamics.baths import THERMOSTATS, VALUES, crystal, ideal_gas, liquid, slope
from tests.molecular.dynamics.test_dynamics import ROWS, made

ISOTROPIC = {"barostat": stochastic_cell_rescaling()}
ANISOTROPIC = {"barostat": stochastic_cell_rescaling(isotropic=False)}


def drift(simulation, time):
    """Return the largest change of the conserved energy within a time."""
    steps = round(time / float(simulation.params["time_step"]))
    _, _, found = jax.jit(trajectory(simulation, steps, 1))(simulation.params, jax.random.key(0))
    energy = found["conserved_energy"]
    # The bath has moved far more.
    assert float(jnp.ptp(found["energy"])) > 1
    return float(jnp.abs(energy - energy[0]).max())


@pytest.mark.parametrize("length", [1, 3])
def test_energy_of_chain_and_particles_is_conserved_at_second_order(x64, length):
    step = 0.01
    errors = [
        drift(liquid(nose_hoover, options={"chain": length}, temperature=1.0, time_step=h, thermostat_time=0.1), 1.0)
        for h in (step, step / 2)
    ]
    assert errors[0] < 0.2
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_energy_of_particles_and_rescaling_bath_does_not_drift(x64):
    simulation = liquid(bussi, time_step=0.004, thermostat_time=0.1)
    _, _, found = jax.jit(trajectory(simulation, 5000, 10))(simulation.params, jax.random.key(0))
    energy = np.asarray(found["conserved_energy"])
    # Two hundred thermostat times, each of which exchanges an energy of order T sqrt(f).
    assert np.ptp(found["energy"]) > 10
    assert abs(energy[-100:].mean() - energy[:100].mean()) < 0.02
    # The kinetic energy alone, without forces, is exchanged and diagnosed to the last digits.
    gas = ideal_gas(bussi, 8, cell=[4.0, 4.0])
    _, _, found = jax.jit(trajectory(gas, 200, 10))(gas.params, jax.random.key(1))
    np.testing.assert_allclose(found["conserved_energy"], found["conserved_energy"][0], rtol=1e-12)
    assert np.ptp(found["kinetic_energy"]) > 1


def ramp(params, time):
    return params["temperature"] + params["slope"] * time


@pytest.mark.parametrize("name", ["langevin", "bussi"])
def test_temperature_follows_its_schedule(x64, name):
    # Free particles: d<K>/dt = r (f T(t) / 2 - <K>), so the temperature lags behind a ramp by slope / r in the end.
    rate, slope, time, count, members = 4.0, 0.8, 1.5, 500, 64
    simulation = ideal_gas(
        THERMOSTATS[name],
        count,
        cell=[4.0, 4.0],
        options={"temperature": ramp},
        friction=rate / 2,
        thermostat_time=1 / rate,
        temperature=1.0,
        slope=slope,
    )
    many = ensemble(simulation)
    steps = round(time / 0.005)
    _, _, found = jax.jit(trajectory(many, steps, steps))(
        simulation.params, jax.random.split(jax.random.key(4), members)
    )
    wanted = 1 + slope * time - slope / rate * (1 - np.exp(-rate * time))
    # 64,000 components: sqrt(2 / 64,000) = 0.56 %, three of them; without the lag it would be 12 % more.
    assert float(found["temperature"][-1].mean()) == pytest.approx(wanted, rel=0.017)


def test_pressure_follows_its_schedule(x64):
    count, rate, slope = 4000, 2.0, 1.5
    simulation = ideal_gas(
        langevin,
        count,
        cell=[60.0, 60.0],
        options={
            "barostat": stochastic_cell_rescaling(pressure=lambda params, time: params["pressure"] * (1 + slope * time))
        },
        temperature=1.0,
        friction=20.0,
        compressibility=rate,
        barostat_time=1.0,
    )
    _, _, found = jax.jit(trajectory(simulation, 200, 20))(simulation.params, jax.random.key(5))
    # dV/dt = b (N T - p(t) V).
    exact = integrate.solve_ivp(
        lambda t, v: rate * (count - (1 + slope * t) * v), (0, 1), [3600.0], t_eval=found["time"], rtol=1e-9
    )
    # Volumes of 4000 particles scatter by 1.6 % and are correlated; three standard deviations.
    np.testing.assert_allclose(found["volume"], exact.y[0], rtol=0.05)
    assert found["volume"][-1] < 0.6 * found["volume"].max()


def test_masks_of_frozen_particles_that_do_not_match_are_refused():
    with pytest.raises(UserError, match=r"frozen has shape \(2,\) and type int64; give true or false for each"):
        liquid(langevin, options={"frozen": [0, 3]})
    simulation = liquid(langevin, options={"frozen": np.ones(16, bool)})
    with pytest.raises(UserError, match="names 16 of 16 particles"):
        simulation.init(simulation.params, jax.random.key(0))
    nothing = liquid(velocity_verlet, options={"frozen": np.zeros(16, bool)})
    assert float(nothing.init(nothing.params, jax.random.key(0)).freedom.count) == 30


@pytest.mark.parametrize("name", THERMOSTATS)
def test_derivatives_equal_central_differences(x64, name):
    simulation = liquid(THERMOSTATS[name], per_side=3, density=0.5, options=ISOTROPIC)
    rate = "friction" if name == "langevin" else "thermostat_time"
    names = ["temperature", rate, "pressure", "compressibility", "barostat_time", "epsilon", "time_step"]
    found = gradient.check_gradient(
        Objective(simulation, "potential_energy", steps=20), simulation.params, jax.random.key(8), names
    )
    for parameter in names:
        assert abs(found.derivative[parameter]) > 1e-7
        assert found.relative_difference[parameter] < 1e-6, parameter


def test_derivative_by_a_schedule_equals_central_differences(x64):
    options = {"barostat": stochastic_cell_rescaling(isotropic=False), "temperature": ramp}
    simulation = liquid(bussi, per_side=3, density=0.5, kind="triclinic", options=options, slope=2.0)
    names = ["slope", "pressure", "thermostat_time"]
    found = gradient.check_gradient(
        Objective(simulation, "volume", steps=20), simulation.params, jax.random.key(9), names
    )
    for parameter in names:
        assert found.relative_difference[parameter] < 1e-6, parameter


COUNT, TEMPERATURE, PRESSURE = 8, 0.7, 0.9
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


STEPS = 20


def ran(simulation):
    """Return the last state and what all steps tell, compiled without optimizations, which would take longer."""

    def diagnosed(state, params):
        return state, simulation.observe(state, params) | {"force": state.force}, simulation.diagnose(state, params)

    def compiled(function, *arguments):
        return jax.jit(function).lower(*arguments).compile({"xla_backend_optimization_level": 0})

    params, key = simulation.params, jax.random.key(0)
    state = compiled(simulation.init, params, key)(params, key)
    step = compiled(lambda state, params: diagnosed(simulation.step(state, params), params), state, params)
    steps = []
    for _ in range(STEPS):
        steps.append(step(state, params))
        state = steps[-1][0]
    return state, *(
        {name: np.stack([np.asarray(moment[which][name]) for moment in steps]) for name in steps[0][which]}
        for which in (1, 2)
    )


def check(method, barostat, kind, dimension, schedule, frozen):
    simulation = made(method, barostat, kind, dimension, schedule, frozen)
    state, seen, found = ran(simulation)
    for values in (*seen.values(), *found.values()):
        assert np.isfinite(values).all()
    count = seen["position"].shape[1]
    held = np.arange(count) < 2 if frozen else np.zeros(count, bool)
    assert (np.abs(seen["position"][-1] - seen["position"][0])[~held].max(axis=1) > 0).all()
    kinetic = found["kinetic_energy"]
    freedom = dimension * (count - held.sum() - (method != "langevin" and not frozen))
    assert float(state.freedom.count) == freedom
    # With the kinetic energies of half a kick before and after; the mass is 1.
    around = kinetic + ((VALUES["time_step"] / 2 * seen["force"]) ** 2).sum(axis=(1, 2)) / 2
    np.testing.assert_allclose(found["temperature"], 2 * around / freedom, rtol=1e-12)
    if frozen:
        assert (seen["velocity"][:, held] == 0).all()
        assert (seen["position"][:, held] == seen["position"][0, held]).all()
    elif method != "langevin":
        # Round-off of 20 steps.
        assert found["momentum"].max() < 1e-13
    if method == "velocity_verlet":
        kept = found["energy"]
    elif method != "langevin" and barostat == "none":
        kept = found["conserved_energy"]
        assert np.ptp(found["energy"]) > 100 * np.ptp(kept)
    else:
        kept = np.zeros(1)
        assert "conserved_energy" not in found
    # Verlet's error: steps of 0.005 at frequencies below 20.
    assert np.ptp(kept) < 3e-3 * kinetic.mean()
    if barostat == "none":
        assert state.cell is None
        assert kind == "free" or (seen["cell"] == seen["cell"][0]).all()
        return
    assert seen["cell"].shape == (STEPS, dimension, dimension)
    volume = np.abs(np.linalg.det(seen["cell"]))
    np.testing.assert_allclose(found["volume"], volume, rtol=1e-12)
    assert (np.diff(volume) != 0).all()
    shape = np.linalg.solve(seen["cell"][0], seen["cell"][-1])
    if kind == "sides":
        assert (seen["cell"][:, ~np.eye(dimension, dtype=bool)] == 0).all()
    if barostat == "isotropic":
        np.testing.assert_allclose(shape, shape[0, 0] * np.eye(dimension), atol=1e-13)
    else:
        assert np.ptp(np.diagonal(shape)) > 1e-4


@pytest.mark.parametrize(("method", "barostat", "kind", "dimension", "schedule"), ROWS)
def test_each_combination_runs_and_conserves(x64, method, barostat, kind, dimension, schedule):
    check(method, barostat, kind, dimension, schedule, frozen=False)


@pytest.mark.parametrize(
    ("method", "kind", "dimension"),
    [("velocity_verlet", "sides", 2), ("langevin", "free", 3), ("nose_hoover", "triclinic", 2), ("bussi", "sides", 3)],
)
def test_conserved_quantities_hold_with_frozen_particles(x64, method, kind, dimension):
    check(method, "none", kind, dimension, schedule=method == "nose_hoover", frozen=True)


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
TWO_TEMPERATURES, PRESSURES = (1.1, 1.5), (0.4, 0.55)
RUNS, SAMPLES, APART, SKIPPED = 32, 100, 50, 20


@functools.cache
def sampled_file(method, folder):
    """Return diagnostics, (4 kinds of runs, members, samples): two temperatures in one cell, then two pressures."""
    path = folder / f"{method}.toml"
    path.write_text(FILE.format(method=method, rate=RATES[method]))
    simulation = build(load(path))
    many = ensemble(simulation, ["temperature", "pressure", "compressibility"])
    kinds = {
        "temperature": [*TWO_TEMPERATURES, 1.5, 1.5],
        "pressure": [1.0, 1.0, *PRESSURES],
        "compressibility": [0.0, 0.0, 1.5, 1.5],
    }
    params = {**simulation.params, **{name: jnp.repeat(jnp.asarray(v), RUNS) for name, v in kinds.items()}}
    keys = jax.random.split(jax.random.key(1), 4 * RUNS)
    _, _, found = jax.jit(trajectory(many, SAMPLES * APART, APART))(params, keys)
    return {name: np.asarray(value)[SKIPPED:].T.reshape(4, RUNS, -1) for name, value in found.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def ratio(low, high):
    """Return the slope of the logarithm of the ratio of two distributions, and its standard error."""
    without = [slope(np.delete(low, m, 0), np.delete(high, m, 0)) for m in range(RUNS)]
    return slope(low, high), np.std(without) * (RUNS - 1) ** 0.5


@pytest.mark.parametrize("method", RATES)
def test_energies_of_a_file_at_two_temperatures_have_the_ratio_of_boltzmann_factors(x64, method, folder):
    found = sampled_file(method, folder)
    np.testing.assert_allclose(found["volume"][:2], 16 / 0.3, rtol=1e-12)
    for kind, wanted in enumerate((*TWO_TEMPERATURES, 1.5, 1.5)):
        of_members = found["temperature"][kind].mean(axis=1)
        error = of_members.std() / RUNS**0.5
        assert error < 0.01 * wanted
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)
    expected = 1 / TWO_TEMPERATURES[0] - 1 / TWO_TEMPERATURES[1]
    got, error = ratio(*found["energy"][:2])
    assert error < 0.05 * expected
    assert got == pytest.approx(expected, abs=3.5 * error)


@pytest.mark.parametrize("method", RATES)
def test_pressure_of_a_file_is_held_and_volumes_have_the_ratio_of_boltzmann_factors(x64, method, folder):
    found = sampled_file(method, folder)
    for wanted, values in zip(PRESSURES, found["pressure"][2:], strict=True):
        of_members = values.mean(axis=1)
        error = of_members.std() / RUNS**0.5
        assert error < 0.05 * wanted
        assert of_members.mean() == pytest.approx(wanted, abs=3.5 * error)
    expected = (PRESSURES[0] - PRESSURES[1]) / 1.5
    got, error = ratio(*found["volume"][2:])
    assert error < 0.15 * -expected
    assert got == pytest.approx(expected, abs=3.5 * error)


def bound(method, count, field):
    """Particles at the corners of a line in a trap, in a bath of temperature 1."""
    return molecular.system(
        dimension=3,
        particles={"A": {"count": count}},
        start={"positions": [[0.5 * i, 0.1 * i, 0.0] for i in range(count)]},
        fields=[{"energy": field}],
        interactions=[{"energy": "0.5*(r - 1)**2"}] if count > 1 else [],
        task="dynamics",
        dynamics={"method": method, "time_step": 0.05, "thermostat_time": 0.2, "temperature": "warm"},
        parameters={"warm": 1.0},
    )


@pytest.mark.parametrize("method", ["bussi", "nose_hoover"])
def test_a_field_that_sets_in_later_is_not_taken_for_conserved_momentum(x64, method):
    """Had the center of mass been set apart at the start, it would stay cold: T (d N - d)/(d N), here a half."""
    simulation = bound(method, 2, "where(time > 1, 1, 0)*(x**2 + 1.3*y**2 + 1.7*z**2)")
    keys = jax.random.split(jax.random.key(0), 64)
    run = jax.jit(jax.vmap(trajectory(simulation, 1000, 20), in_axes=(None, 0)))
    temperature = run(simulation.params, keys)[2]["temperature"][:, 10:]
    # 6 degrees of freedom scatter by sqrt(2/6) each time; 64 runs of 40 samples, a fifth of them independent.
    assert float(jnp.mean(temperature)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 6 / (64 * 8)))


def test_one_particle_alone_has_all_its_degrees_of_freedom(x64):
    simulation = bound("bussi", 1, "x**2 + y**2 + z**2")
    state = simulation.init(simulation.params, jax.random.key(1))
    assert float(state.freedom.count) == 3
    assert simulation.diagnose(state, simulation.params)["temperature"] == pytest.approx(
        float(jnp.sum(state.velocity**2)) / 3
    )
