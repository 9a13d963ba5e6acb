"""Parts of another package: in files, and a thermostat in Python."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.molecular.dynamics import Method, motion
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import force_shifted, pair_potential
from simkit.molecular.structures import lattices
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.molecular.description.test_parts import (
    DYNAMICS,
    RELAXATION,
    package,  # noqa: F401
    written,
)

REACH = 2.9
PAIR = {"epsilon": 1.3, "width": 0.8}
PARAMS = {"pair": PAIR, "mass": 1.0, "temperature": 0.05, "time_step": 0.02}


def sites():
    return lattices.triangular((6, 4))


# The potential: a soft repulsion of Gaussian shape, U = epsilon exp(-(r / width)^2), which the package does not have.
@pair_potential
def gaussian_core(distance, epsilon, width):
    return epsilon * jnp.exp(-((distance / width) ** 2))


def repulsion(**options):
    # The cut-off of the truncation that wraps it is a parameter like its own.
    return pair_interaction(
        force_shifted(gaussian_core),
        cutoff=REACH,
        parameters=lambda p: p["pair"] | {"cutoff": jnp.asarray(REACH)},
        **options,
    )


def start(params, key):
    position = sites().position
    return position + 0.1 * jax.random.uniform(key, position.shape, minval=-1, maxval=1)


def cell(params):
    return sites().cell


# The thermostat: Nose and Hoover's friction xi, Q xi' = sum m v^2 - g T, split symmetrically about the Verlet step.
# Reference: Hoover, Phys. Rev. A 31, 1695 (1985), doi:10.1103/PhysRevA.31.1695.
def nose_hoover():
    def begin(params, key):
        zero = jnp.zeros_like(params["temperature"])
        return {"friction": zero, "supplied": zero}

    def half(bath, velocity, params, mass):
        excess = jnp.sum(mass * velocity**2) - velocity.size * params["temperature"]
        return bath["friction"] + params["time_step"] / 2 * excess / params["inertia"]

    def advance(state, params, mass, evaluate):
        h = params["time_step"]
        friction = half(state.bath, state.velocity, params, mass)
        velocity = state.velocity * jnp.exp(-friction * h / 2) + h / 2 * state.force / mass
        position = state.position + h * velocity
        force, neighbors = evaluate(position, state.neighbors)
        velocity = (velocity + h / 2 * force / mass) * jnp.exp(-friction * h / 2)
        supplied = state.bath["supplied"] + h * friction * velocity.size * params["temperature"]
        bath = {"friction": half({"friction": friction}, velocity, params, mass), "supplied": supplied}
        moved = {"position": position, "velocity": velocity, "force": force}
        return dataclasses.replace(state, neighbors=neighbors, bath=bath, **moved)

    return Method(start=begin, advance=advance)


def thermostatted():
    def measure(state, cell, params):
        neighbors = repulsion().prepare(state.position, cell, params)
        kinetic = jnp.sum(params["mass"] * state.velocity**2) / 2
        potential = repulsion().energy(state.position, cell, params, neighbors)
        bath = params["inertia"] * state.bath["friction"] ** 2 / 2 + state.bath["supplied"]
        return {"extended_energy": kinetic + potential + bath}

    params = PARAMS | {"inertia": 0.5}
    return motion(repulsion(), start, nose_hoover(), params=params, isolated=False, cell=cell, measure=measure)


def test_a_user_thermostat_has_its_temperature_and_conserved_energy(x64):
    simulation = thermostatted()
    _, _, seen = jax.jit(trajectory(simulation, 3000, 10))(simulation.params, jax.random.key(2))
    extended, kinetic = seen["extended_energy"], seen["kinetic_energy"]
    assert float(jnp.abs(extended - extended[0]).max()) < 1e-2 * float(kinetic.mean())
    # 96 degrees of freedom fluctuate by sqrt(2 / 96) = 14 %; some 20 independent samples, three standard errors.
    assert 2 * float(kinetic[100:].mean()) / 96 == pytest.approx(PARAMS["temperature"], rel=0.1)


def test_derivatives_through_a_user_thermostat_equal_central_differences(x64):
    objective = Objective(thermostatted(), "kinetic_energy", steps=30)
    names = ["temperature", "inertia", "pair.width"]
    found = check_gradient(objective, thermostatted().params, jax.random.key(3), names)
    for name in names:
        assert float(found.derivative[name]) == pytest.approx(float(found.difference[name]), rel=1e-6)


def test_potential_field_start_and_minimizer_of_another_package_relax_a_file(x64, tmp_path):
    made = build(load(written(tmp_path / "rest.toml", RELAXATION)))

    @jax.jit
    def relaxed(params):
        start = made.init(params, jax.random.key(0))
        end = converge(made, 1000)(start, params)
        return made.diagnose(start, params)["energy"], end.status, made.observe(end.state, params)["position"]

    first, status, position = relaxed(made.params)
    # Three equal distances sqrt(3) R: 3 q^2 exp(-d) / d + 3 k R^2 / 2, with R = 1 at the start.
    energy = lambda r: 3 * 1.5**2 * np.exp(-np.sqrt(3) * r) / (np.sqrt(3) * r) + 3 * 2.0 * r**2 / 2  # noqa: E731
    assert float(first) == pytest.approx(energy(1.0), rel=1e-12) and int(status) == Status.CONVERGED
    radii = np.linalg.norm(position, axis=1)
    assert energy(radii[0]) < min(energy(0.999 * radii[0]), energy(1.001 * radii[0]))
    np.testing.assert_allclose(radii, radii[0], rtol=1e-7)


def test_thermostat_and_barostat_of_another_package_move_a_file(x64, tmp_path):
    made = build(load(written(tmp_path / "moves.toml", DYNAMICS)))

    @jax.jit
    def moved(params):
        start = made.init(params, jax.random.key(0))
        end = jax.lax.fori_loop(0, 4, lambda _, state: made.step(state, params), start)
        return [(made.diagnose(state, params), made.observe(state, params)["cell"]) for state in (start, end)]

    (first, cell), (last, deformed) = moved(made.params)
    assert np.isfinite(last["energy"]) and float(last["volume"]) != float(first["volume"])
    # At this rate the velocities have the temperature of the bath in the middle of every step.
    assert float(last["temperature"]) == pytest.approx(0.4 + 4 * 0.005, rel=0.2)
    assert float(deformed[0, 0] / deformed[1, 1]) != pytest.approx(float(cell[0, 0] / cell[1, 1]))
