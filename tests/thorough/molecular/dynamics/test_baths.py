"""Thermostats and barostats: conserved energies, schedules, frozen particles, derivatives, resumed runs, batches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from simkit.core import gradient
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.engine.driver import Plan
from simkit.errors import UserError
from simkit.molecular.dynamics import bussi, langevin, nose_hoover, stochastic_cell_rescaling, velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from simkit.storage.store import Store
from tests.driving import drive
from tests.molecular.dynamics.baths import THERMOSTATS, VALUES, ideal_gas, liquid, slope
from tests.molecular.dynamics.moving import floats
from tests.molecular.dynamics.test_bath_table import ISOTROPIC
from tests.physics.test_canonical_ensemble import MEMBERS, TEMPERATURES, sampled


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
        drift(liquid(nose_hoover, options={"length": length}, temperature=1.0, time_step=h, thermostat_time=0.1), 1.0)
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


def test_chain_is_reversible_in_time(x64):
    simulation = liquid(nose_hoover)
    state = simulation.init(simulation.params, jax.random.key(2))
    run = jax.jit(segment(simulation, 100))
    middle = run(state, simulation.params)
    turned = dataclasses.replace(
        middle, velocity=-middle.velocity, bath=dataclasses.replace(middle.bath, rate=-middle.bath.rate)
    )
    back = run(turned, simulation.params)
    assert float(jnp.abs(middle.bath.rate).max()) > 0.1
    np.testing.assert_allclose(back.position, state.position, rtol=0, atol=1e-10)
    np.testing.assert_allclose(back.bath.rate, jnp.zeros(3), rtol=0, atol=1e-9)


def test_conserved_momentum_does_not_change_and_is_no_degree_of_freedom(x64):
    # A gas that flies at a speed of 20 has the temperature of one at rest.
    flying = {"velocity": lambda params, key: jax.random.normal(key, (16, 2)) + 20.0}
    for dynamics in (nose_hoover, bussi):
        simulation = liquid(dynamics, options=flying, thermostat_time=0.05)
        state, _, found = jax.jit(trajectory(simulation, 400, 4))(simulation.params, jax.random.key(3))
        assert float(state.freedom.count) == 30
        np.testing.assert_allclose(found["momentum"], found["momentum"][0], rtol=1e-11)
        assert float(found["temperature"][50:].mean()) == pytest.approx(1.5, rel=0.25)


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


def test_conserved_energy_holds_under_a_schedule(x64):
    options = {"temperature": lambda params, time: params["temperature"] * jnp.exp(-time)}
    errors = [drift(liquid(nose_hoover, options=options, time_step=h, thermostat_time=0.1), 1.0) for h in (0.01, 0.005)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


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


@pytest.mark.parametrize("name", THERMOSTATS)
def test_frozen_particles_act_on_the_others_and_have_no_temperature(x64, name):
    frozen = np.arange(16) % 4 == 0
    simulation = liquid(THERMOSTATS[name], options={"frozen": frozen})
    state, seen, found = jax.jit(trajectory(simulation, 1000, 5))(simulation.params, jax.random.key(6))
    assert float(state.freedom.count) == 24
    assert (np.asarray(seen["position"])[:, frozen] == np.asarray(seen["position"])[0, frozen]).all()
    assert (np.asarray(state.force)[frozen] == 0).all()
    # 24 degrees of freedom, 200 samples of which some 20 are independent: 6 %, three of them.
    assert float(found["temperature"][20:].mean()) == pytest.approx(1.5, rel=0.2)


def test_frozen_wall_keeps_the_energy_and_takes_momentum(x64):
    frozen = np.arange(16) < 4
    simulation = liquid(velocity_verlet, options={"frozen": frozen}, time_step=0.002)
    _, _, found = jax.jit(trajectory(simulation, 500, 5))(simulation.params, jax.random.key(7))
    assert float(jnp.ptp(found["energy"])) < 1e-2
    assert float(jnp.ptp(found["momentum"])) > 1


def test_masks_of_frozen_particles_that_do_not_match_are_refused():
    with pytest.raises(UserError, match=r"frozen has shape \(2,\) and type int64; give true or false for each"):
        liquid(langevin, options={"frozen": [0, 3]})
    for mask, message in (
        (np.ones(16, bool), "names 16 of 16 particles"),
        ([True, False], "names 1 of 2 particles, and there are 16"),
    ):
        simulation = liquid(langevin, options={"frozen": mask})
        with pytest.raises(UserError, match=message):
            simulation.init(simulation.params, jax.random.key(0))
    nothing = liquid(velocity_verlet, options={"frozen": np.zeros(16, bool)})
    assert float(nothing.init(nothing.params, jax.random.key(0)).freedom.count) == 30


@pytest.mark.parametrize("name", THERMOSTATS)
def test_derivatives_equal_central_differences(x64, name):
    simulation = liquid(THERMOSTATS[name], per_side=3, density=0.5, options={"barostat": ISOTROPIC})
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


@pytest.mark.parametrize("name", THERMOSTATS)
def test_stopped_run_is_resumed_bit_for_bit(x64, tmp_path, name):
    simulation, plan = (
        liquid(THERMOSTATS[name], per_side=3, density=0.5, options={"barostat": ISOTROPIC}),
        Plan(steps=20, every=1),
    )

    def recorded(path, stop=None):
        for piece in drive(simulation, simulation.params, jax.random.key(10), plan, store=Store(path)):
            if piece.index == stop:
                break
        return list(Store(path).read())

    whole = recorded(tmp_path / "whole")
    begun = recorded(tmp_path / "parts", stop=1)
    parts = recorded(tmp_path / "parts")
    assert len(begun) < len(parts)
    for name in whole[0]:
        np.testing.assert_array_equal(
            np.concatenate([arrays[name] for arrays in parts]), np.concatenate([arrays[name] for arrays in whole])
        )


@pytest.mark.parametrize("name", THERMOSTATS)
def test_members_equal_single_runs(x64, name):
    simulation = liquid(THERMOSTATS[name], per_side=3, density=0.5, options={"barostat": ISOTROPIC})
    many, members = ensemble(simulation, ["temperature", "pressure"]), 3
    own = {"temperature": jnp.array([0.5, 1.0, 2.0]), "pressure": jnp.array([0.2, 1.0, 3.0])}
    keys = jax.random.split(jax.random.key(11), members)
    together = jax.jit(segment(many, 20))(many.init(simulation.params | own, keys), simulation.params | own)
    alone = jax.jit(segment(simulation, 20))
    for member in range(members):
        params = simulation.params | {key: values[member] for key, values in own.items()}
        single = alone(simulation.init(params, keys[member]), params)
        np.testing.assert_allclose(together.position[member], single.position, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.cell[member], single.cell, rtol=1e-13)


@pytest.mark.parametrize("name", THERMOSTATS)
@pytest.mark.parametrize("wide", [False, True])
def test_precision_is_kept_and_conserved_energy_is_diagnosed(name, wide):
    with jax.enable_x64(wide):
        options = {"barostat": ISOTROPIC} if name == "langevin" else {}
        simulation = liquid(THERMOSTATS[name], per_side=3, density=0.5, options=options, time_step=0.0025)
        start = simulation.init(simulation.params, jax.random.key(12))
        end = jax.jit(segment(simulation, 100))(start, simulation.params)
        for before, after in zip(jax.tree.leaves(start), jax.tree.leaves(end), strict=True):
            assert before.dtype == after.dtype
            assert before.shape == after.shape
        assert end.position.dtype == (jnp.float64 if wide else jnp.float32)
        if name != "langevin":
            energies = [simulation.diagnose(state, simulation.params)["conserved_energy"] for state in (start, end)]
            # Verlet's error, as in double precision; round-off of single precision is 1e-5 of it at most.
            assert float(energies[1]) == pytest.approx(float(energies[0]), abs=0.02)


def test_chain_in_single_precision_is_that_in_double():
    ends = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            velocity = np.stack([np.linspace(-1, 1, 9), np.cos(np.arange(9))], axis=1)
            options = {"velocity": lambda params, key, v=velocity: jnp.asarray(v, params["mass"].dtype)}
            simulation = liquid(nose_hoover, per_side=3, density=0.5, options=options)
            start = simulation.init(simulation.params, jax.random.key(0))
            ends.append(jax.jit(segment(simulation, 40))(start, simulation.params))
    np.testing.assert_allclose(ends[0].position, ends[1].position, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ends[0].bath.rate, ends[1].bath.rate, rtol=0, atol=1e-4)
