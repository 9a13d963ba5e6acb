"""Dynamics without a bath and with friction: order, conservation, diagnostics, resolution, and a melting fluid."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status, failed, status_of
from simkit.errors import UserError
from simkit.molecular import interactions
from simkit.molecular.dynamics import langevin, maxwell_boltzmann, velocity_verlet
from simkit.molecular.dynamics.measures import conserved_directions
from simkit.molecular.interactions.interaction import combined, user_energy
from simkit.molecular.potentials import lennard_jones, switched
from tests.molecular.dynamics.moving import floats, gas, gas_interaction, oscillators, tetramer
from tests.molecular.dynamics.test_dynamics import KEY, fluid
from tests.tables import every

DIFFERENTIATED = {
    "each mass": (tetramer, 100, ["mass"]),
    "a gas": (gas, 30, ["epsilon", "sigma", "mass", "temperature", "time_step"]),
    "a bath": (
        lambda: gas(langevin, per_side=6, method="all_pairs"),
        30,
        ["epsilon", "mass", "temperature", "friction", "time_step"],
    ),
}


@pytest.mark.parametrize("case", DIFFERENTIATED)
def test_derivatives_through_a_run_equal_central_differences(x64, case):
    make, steps, names = DIFFERENTIATED[case]
    objective = Objective(simulation := make(), "potential_energy", steps=steps)
    found = gradient.check_gradient(objective, simulation.params, jax.random.key(KEY), names)
    for name in names:
        assert np.abs(found.derivative[name]).min() > 1e-3
        # Truncation of the difference with a relative step of 6e-6, and rounding of 1e-16 / 6e-6 of a value near 100.
        assert np.max(found.relative_difference[name]) < 1e-6, name


def test_energy_does_not_drift_over_a_hundred_thousand_steps(x64):
    simulation = tetramer()
    _, _, found = jax.jit(trajectory(simulation, 100_000, 10))(simulation.params, jax.random.key(KEY))
    energy = np.asarray(found["energy"])
    wobble = energy.std()
    # The energy wobbles by about (omega h)^2 / 8, here 5e-4, of the 0.1 or so in vibrations.
    assert 1e-6 < wobble < 1e-4
    tenths = energy[1:].reshape(10, -1).mean(axis=1)
    # Over ten thousand steps the wobble averages out, but for the slow exchange of energy between vibrations, on which
    # its mean depends a little.
    assert np.ptp(tenths) < wobble
    # That wanders without a trend: the slope is within five of its standard errors, which chance passes once in a
    # thousand times (Student's t for eight degrees of freedom).
    (slope, _), covariance = np.polyfit(np.arange(10), tenths, 1, cov=True)
    assert abs(slope) < 5 * np.sqrt(covariance[0, 0])
    # Round-off of 1e-16 in a velocity of order one, a hundred thousand times at random.
    assert np.ptp(found["momentum"]) < 1e-12


def test_free_particles_diffuse_at_the_rate_of_einstein(x64):
    temperature, mass, friction, step, steps = 0.7, 1.6, 2.5, 0.02, 1000
    values = {"stiffness": 0.0, "mass": mass, "temperature": temperature, "friction": friction, "time_step": step}
    simulation = oscillators(langevin, 10_000, 3, **values)
    start = simulation.init(simulation.params, jax.random.key(3))
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    time, coefficient = steps * step, temperature / (mass * friction)
    # D = T / (m gamma); the velocities of the start are thermal, so the first steps are ballistic.
    expected = 2 * coefficient * (time - (1 - np.exp(-friction * time)) / friction)
    # 30,000 squares: sqrt(2 / 30,000) = 0.8 %, four of them; the time step adds (gamma h)^2 / 12 = 2e-4.
    assert float(jnp.mean(end.position**2)) == pytest.approx(expected, rel=0.033)
    assert float(jnp.mean(end.velocity**2)) == pytest.approx(temperature / mass, rel=0.033)


def test_without_friction_it_is_velocity_verlet(x64):
    newton, bath = gas(velocity_verlet, method="all_pairs"), gas(langevin, method="all_pairs", friction=0.0)
    state = newton.init(newton.params, jax.random.key(4))
    start = bath.init(bath.params, jax.random.key(5))
    start = dataclasses.replace(start, position=state.position, velocity=state.velocity, force=state.force)
    steps = 100
    expected = jax.jit(segment(newton, steps))(state, newton.params)
    found = jax.jit(segment(bath, steps))(start, bath.params)
    # One half step twice instead of a whole one: round-off, which 100 steps (0.5 units of time) of a chaotic gas
    # multiply by less than a hundred.
    np.testing.assert_allclose(found.position, expected.position, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.velocity, expected.velocity, rtol=0, atol=1e-11)


def test_at_zero_friction_only_the_derivative_with_respect_to_it_is_infinite(x64):
    simulation = oscillators(langevin, 3, friction=0.0)
    objective = Objective(simulation, "energy", steps=5)
    names = ["friction", "stiffness", "mass", "temperature", "time_step"]
    _, derivative = jax.jit(gradient.with_derivative(objective, names))(simulation.params, jax.random.key(7))
    # An energy that is a root of the friction near zero.
    assert not np.isfinite(derivative.pop("friction"))
    newton = oscillators(velocity_verlet, 3)
    start = simulation.init(simulation.params, jax.random.key(7))

    def energy(params):
        state = newton.init(params, jax.random.key(7))
        state = segment(newton, 5)(dataclasses.replace(state, velocity=velocity(params)), params)
        return newton.diagnose(state, params)["energy"]

    def velocity(params):
        scale = jnp.sqrt(params["temperature"] / params["mass"])
        return scale * jax.lax.stop_gradient(start.velocity)  # drawn at temperature 1 and mass 1

    expected = jax.jit(jax.grad(energy))(newton.params)
    for name, value in derivative.items():
        assert float(value) == pytest.approx(float(expected[name]), rel=1e-9, abs=1e-12), name


def test_diagnostics_equal_their_definitions(x64):
    simulation = gas(langevin, capacity=40, temperature=3.0, density=0.5)
    _, seen, found = jax.jit(trajectory(simulation, 120, 1))(simulation.params, jax.random.key(1))
    velocity, box = np.asarray(seen["velocity"]), seen["box"][0]
    kinetic = (velocity**2).sum(axis=(1, 2)) / 2
    np.testing.assert_allclose(found["kinetic_energy"], kinetic, rtol=1e-12)
    # In a bath all 128 components count, with velocities half a kick before and after.
    kick = 0.005 / 2 * np.asarray(seen["force"])
    around = np.stack([velocity - kick, velocity + kick])
    np.testing.assert_allclose(found["temperature"], (around**2).sum(axis=(2, 3)).mean(axis=0) / 128, rtol=1e-12)
    np.testing.assert_allclose(found["time"], 0.005 * np.arange(121), rtol=1e-12)
    np.testing.assert_allclose(found["momentum"], np.linalg.norm(velocity.sum(axis=1), axis=1), rtol=0, atol=1e-11)
    np.testing.assert_allclose(found["energy"], found["kinetic_energy"] + found["potential_energy"], rtol=1e-12)
    # The pressure is -dF/dV: kinetic energy falls as V^(-2/d) when momenta are squeezed along with the box.
    exact = gas_interaction("all_pairs")

    def energy(stretch):
        squeezed = around[:, -1] / stretch
        at = stretch * seen["position"][-1], stretch * box, simulation.params, ()
        return jnp.sum(squeezed**2) / 4 + exact.energy(*at)

    slope = jax.jit(jax.grad(energy))(1.0)
    # d/dV = 1 / (2 V) d/dstretch in two dimensions.
    assert float(found["pressure"][-1]) == pytest.approx(float(-slope / (2 * box.prod())), rel=1e-10)


def test_galilean_boost_changes_neither_temperature_nor_pressure(x64):
    def boosted(by):
        def velocity(params, key):
            rest = maxwell_boltzmann(key, params["temperature"], params["mass"], (16, 2), drift=False)
            return rest + jnp.array([by, 0.0])

        interaction = gas_interaction("all_pairs")
        start = jnp.asarray(np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 1.3)
        simulation = velocity_verlet(
            interaction,
            lambda params, key: start,
            params=floats(epsilon=1.0, sigma=1.0, mass=2.0, temperature=0.8, time_step=0.005),
            cell=lambda params: jnp.array([5.2, 5.2]),
            velocity=velocity,
        )
        state = simulation.init(simulation.params, jax.random.key(4))
        return simulation.diagnose(state, simulation.params)

    rest, moving = boosted(0.0), boosted(5.0)
    for name in ("temperature", "pressure", "potential_energy"):
        assert float(moving[name]) == pytest.approx(float(rest[name]), rel=1e-12)
    assert float(moving["momentum"]) == pytest.approx(16 * 2.0 * 5.0, rel=1e-12)
    assert float(moving["kinetic_energy"] - rest["kinetic_energy"]) == pytest.approx(16 * 2.0 * 25 / 2, rel=1e-12)


def test_a_run_that_becomes_unstable_has_that_status(x64):
    # A time step of three over the frequency is unstable.
    simulation = oscillators(velocity_verlet, 1, time_step=3.0)
    end = jax.jit(segment(simulation, 3000))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert int(simulation.status(end, simulation.params)) == Status.NON_FINITE


@every("distance", [0.1, 0.6])
def test_particles_that_separate_in_one_step_are_unresolved(x64, distance):
    status, state = after(pair(steep_pair, [[0.0, 0.0], [distance, 0.0]], 0.01), 50)
    # A caution: positions of springs are right on average up to the limit of stability, at twice the time step.
    assert status == Status.UNRESOLVED and not failed(np.asarray(status))
    assert int(state.iteration) == 50


def pair(energy, start, time_step, method=velocity_verlet, **params):
    interaction = interactions.user_energy(energy)
    params = {"time_step": jnp.asarray(time_step), "mass": jnp.asarray(1.0), "temperature": jnp.asarray(0.0)} | params
    more = {"isolated": False} if method is velocity_verlet else {}
    return method(interaction, lambda p, k: jnp.asarray(start, p["mass"].dtype), params=params, **more)


def after(simulation, steps):
    def run(params, key):
        state = segment(simulation, steps)(simulation.init(params, key), params)
        return status_of(simulation)(state, params), state

    status, state = jax.jit(run)(simulation.params, jax.random.key(0))
    return int(status), state


def steep_pair(position, cell, params):
    r = jnp.sqrt(jnp.sum((position[1] - position[0]) ** 2))
    return 4 * (r**-12 - r**-6)


def spring(position, cell, params):
    return jnp.sum(position**2) / 2


def test_an_overlapping_start_is_resolved_by_short_steps(x64):
    status, state = after(pair(steep_pair, [[0.0, 0.0], [0.6, 0.0]], 2e-5), 2000)
    assert status == Status.OK and int(state.iteration) == 2000


# omega = 1: a step of 1/8 of a period is coarse, one of 1/5 follows nothing.
@every(("time_step", "expected"), [(0.01, Status.OK), (0.8, Status.OK), (1.3, Status.UNRESOLVED)])
def test_a_spring_is_resolved_up_to_a_sixth_of_its_period(x64, time_step, expected):
    assert after(pair(spring, [[1.0, 0.0]], time_step), 20)[0] == expected


@every("dtype", [jnp.float32, jnp.float64])
def test_particles_at_rest_are_resolved(x64, dtype):
    rest = 2 ** (1 / 6)
    simulation = pair(steep_pair, [[50.0, 0.0], [50.0 + rest, 0.0]], 0.01)
    simulation = dataclasses.replace(simulation, params=jax.tree.map(lambda x: x.astype(dtype), simulation.params))
    status, state = after(simulation, 200)
    assert status == Status.OK and state.position.dtype == dtype


def test_noise_of_a_bath_does_not_count_as_unresolved(x64):
    params = {"temperature": jnp.asarray(1.0), "friction": jnp.asarray(5.0)}
    start = np.random.default_rng(0).normal(size=(40, 2))
    assert after(pair(spring, start, 0.2, langevin, **params), 200)[0] == Status.OK


@functools.cache
def melting():
    """Return a short run: its simulation, last state, frames and diagnostics."""
    simulation = fluid()
    run = jax.jit(trajectory(simulation, 20, 1))
    return simulation, *run(simulation.params, jax.random.key(0))


def test_energy_is_the_integral_of_the_radial_distribution(x64):
    simulation, _, frames, found = melting()
    r, g = simulation.coordinates["distance"], np.asarray(frames["radial_distribution"][-1])
    potential = np.asarray(switched(lennard_jones()).energy(r, epsilon=1.0, sigma=1.0, switch_on=2.5, cutoff=3.0))
    near = 2 * np.pi * 0.86 * np.sum(g * potential * r**2) * (r[1] - r[0])
    # U (1 - S) and what lies beyond the cut-off, with g = 1.
    more = np.linspace(2.5, 60.0, 400_001)
    x = np.clip((more - 2.5) / 0.5, 0, 1)
    lost = 4 * (more**-12 - more**-6) * x**3 * (10 - x * (15 - 6 * x)) * more**2
    tail = 2 * np.pi * 0.86 * np.trapezoid(lost, more) - 2 * np.pi * 0.86 * 4 / 3 / 60.0**3
    # Shells of 0.005 blur the potential by U'' dr^2 / 24, about 1e-4 of it where atoms touch.
    assert near + tail == pytest.approx(float(found["mean_potential_energy_per_particle"][-1]), rel=3e-4)


def test_without_a_bath_energy_and_momentum_are_conserved_as_the_crystal_melts(x64):
    simulation, state, _, found = melting()
    assert "friction" not in simulation.params
    assert int(simulation.status(state, simulation.params)) == Status.OK
    # Half of the kinetic energy goes into the lattice, by equipartition if it were harmonic.
    assert float(found["temperature"][-1]) == pytest.approx(0.45, rel=0.25)
    exchanged = np.ptp(found["kinetic_energy"])
    # (omega h)^2 / 8 with omega about 20 for atoms that meet: 1e-3.
    assert np.ptp(found["energy"]) < 5e-3 * exchanged
    assert np.max(found["momentum"]) < 1e-11


def test_shells_beyond_half_the_cell_are_refused(x64):
    simulation = fluid(radial_distribution={"reach": 3.5})
    with pytest.raises(UserError, match=r"radial_distribution.reach = 3.5 is beyond half the cell"):
        simulation.check(simulation.params, jax.random.key(0))


SIDE = 5.2
SITES = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 1.3


def bonds(x, cell, params):
    """Return the energy of springs between successive particles, which sees differences only."""
    return jnp.sum((x[1:] - x[:-1]) ** 2) / 2


def stripes(x, cell, params):
    """Return the energy of grooves that run along (1, -1), with two sites in each period: forces add up to zero."""
    return jnp.sum(jnp.cos(2 * jnp.pi / 2.6 * (x[:, 0] + x[:, 1])))


# Each with the projection onto the directions along which momentum is conserved.
FIELDS = {
    "nothing": (lambda x, cell, params: 0.0 * jnp.sum(x), np.eye(2)),
    "bonds": (bonds, np.eye(2)),
    "trap": (lambda x, cell, params: jnp.sum(x**2) / 2, np.zeros((2, 2))),
    "trap about the center, to the fourth power": (lambda x, cell, params: jnp.sum((x - 1.95) ** 4), np.zeros((2, 2))),
    "gravity": (lambda x, cell, params: 0.01 * jnp.sum(x[:, 1]), np.diag([1.0, 0.0])),
    "gravity across": (lambda x, cell, params: jnp.sum(x @ jnp.array([0.3, 0.4])), [[0.64, -0.48], [-0.48, 0.36]]),
    "stripes": (stripes, [[0.5, -0.5], [-0.5, 0.5]]),
    "a wall that none touches": (lambda x, cell, params: jnp.sum(jnp.maximum(x[:, 0] - 8, 0) ** 2), np.diag([0, 1.0])),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", FIELDS)
def test_directions_of_conserved_momentum_are_those_in_which_a_field_is_constant(name, precision):
    with jax.enable_x64(precision == "float64"):
        field, expected = FIELDS[name]
        params, position = floats(epsilon=1.0, sigma=1.0), jnp.asarray(SITES, dtype=float)
        interaction = combined(gas_interaction("all_pairs"), user_energy(field))
        neighbors = interaction.prepare(position, None, params)
        measure = jax.jit(lambda x: conserved_directions(interaction, x, None, params, neighbors))
        np.testing.assert_allclose(measure(position), expected, atol=1e-6)


def grooved():
    """Return a gas over grooves across x, of a depth that may be zero, at rest or started at a temperature."""

    def grooves(x, cell, params):
        return -params["depth"] * jnp.sum(jnp.cos(2 * jnp.pi / SIDE * x[:, 0]))

    return velocity_verlet(
        combined(gas_interaction("all_pairs"), user_energy(grooves)),
        lambda params, key: jnp.asarray(SITES),
        params=floats(epsilon=1.0, sigma=1.0, mass=2.0, temperature=0.8, time_step=0.005, depth=0.5),
        cell=lambda params: jnp.array([SIDE, SIDE]),
    )


def test_directions_of_conserved_momentum_follow_the_params_of_each_member(x64):
    simulation = grooved()
    depth = jnp.array([0.0, 0.5])
    params, axes = {**simulation.params, "depth": depth}, {**dict.fromkeys(simulation.params), "depth": 0}
    states = jax.jit(jax.vmap(simulation.init, in_axes=(axes, None)))(params, jax.random.key(0))
    momentum = 2.0 * np.asarray(states.velocity).sum(axis=1)
    # Grooves hold x, so the center of mass moves along x as thermally as any particle: sqrt(16 m T) = 5.
    assert abs(momentum[1, 0]) > 0.1
    assert np.abs(momentum.ravel()[[0, 1, 3]]).max() < 1e-12
    diagnose = jax.jit(jax.vmap(simulation.diagnose, in_axes=(0, axes)))
    # Afterwards under the other params: what is counted is what they conserve, not what those of the start did.
    for order in ([0, 1], [1, 0]):
        found = diagnose(states, {**params, "depth": depth[jnp.array(order)]})
        along = np.array([[1.0, 1.0], [0.0, 1.0]])[order]
        kick = 0.005 / 2 * np.asarray(states.force)  # mass times the velocity of half a kick
        drifts = momentum**2 + kick.sum(axis=1) ** 2
        thermal = found["kinetic_energy"] + np.sum(kick**2, axis=(1, 2)) / (2 * 2.0)
        thermal -= np.sum(along * drifts, axis=1) / (2 * 16 * 2.0)
        np.testing.assert_allclose(found["temperature"], 2 * thermal / (32 - along.sum(axis=1)), rtol=1e-12)
