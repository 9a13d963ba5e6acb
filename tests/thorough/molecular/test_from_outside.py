"""A pair potential and a thermostat defined outside the package."""

import dataclasses

import ase.io
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.core.simulation import as_arrays
from simkit.molecular.analysis.elasticity import bulk_modulus, elastic_constants
from simkit.molecular.dynamics import Method, motion, velocity_verlet
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import force_shifted, pair_potential
from simkit.molecular.relaxation import relaxation
from simkit.molecular.structures import lattices

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


def test_a_user_potential_is_summed_over_pairs_and_lists(x64):
    params = as_arrays(PARAMS)
    position, box = start(params, jax.random.key(0)), cell(params)
    values = []
    for method in ("all_pairs", "neighbor_list"):
        interaction = repulsion(method=method, capacity=48)
        neighbors = interaction.prepare(position, box, params)
        values.append(
            [evaluate(position, box, params, neighbors) for evaluate in (interaction.energy, interaction.force)]
        )
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-13)
    np.testing.assert_allclose(values[0][1], values[1][1], atol=1e-13)
    apart = np.asarray(position)[:, None] - np.asarray(position)
    apart -= np.round(apart @ np.linalg.inv(box)) @ np.asarray(box)
    r = np.linalg.norm(apart, axis=-1)[np.triu_indices(len(position), 1)]
    well = PAIR["epsilon"] * np.exp(-((r / PAIR["width"]) ** 2))
    edge = PAIR["epsilon"] * np.exp(-((REACH / PAIR["width"]) ** 2))
    slope = -2 * REACH / PAIR["width"] ** 2 * edge
    expected = np.where(r < REACH, well - edge - (r - REACH) * slope, 0).sum()
    assert float(values[0][0]) == pytest.approx(expected, rel=1e-12)


def relaxed():
    return relaxation(
        repulsion(),
        start,
        params={"pair": PAIR},
        scale=lambda p: Scale(length=p["pair"]["width"], stiffness=p["pair"]["epsilon"] / p["pair"]["width"] ** 2),
        cell=cell,
    )


def test_a_user_potential_is_relaxed_differentiated_stored_and_exported(x64, tmp_path, capsys):
    run = simkit.run(relaxed(), steps=300, every=300, output=tmp_path / "run")
    assert run.attrs["status"] == "converged"
    position, box = jnp.asarray(run["position"][-1].values), cell(None)
    found = check_gradient(
        Objective(relaxed(), "energy", steps=300), relaxed().params, jax.random.key(0), ["pair.epsilon"]
    )
    # At rest the energy is proportional to epsilon.
    assert float(found.derivative["pair.epsilon"]) == pytest.approx(
        float(run["energy"][-1]) / PAIR["epsilon"], rel=1e-9
    )
    written = tmp_path / "out.xyz"
    assert main(["export", str(tmp_path / "run"), "--to", "extended_xyz", "--output", str(written)]) == 0
    last = ase.io.read(written, index=-1)
    np.testing.assert_array_equal(last.positions[:, :2], position)
    np.testing.assert_array_equal(last.cell.array[:2, :2], box)


def test_bulk_modulus_of_a_user_potential_is_the_slope_of_its_pressure(x64):
    params = relaxed().params
    interaction, box, position = repulsion(), cell(params), sites().position
    stiffness = jax.jit(lambda x: elastic_constants(interaction, x, box, params).stiffness)(position)

    @jax.jit
    def pressure(scale):
        neighbors = interaction.prepare(scale * position, scale * box, params)
        return -jnp.trace(interaction.stress(scale * position, scale * box, params, neighbors)) / 2

    step = 1e-4
    # V = scale^2 V0, so -V dp/dV = -(dp/dscale) / 2.
    expected = -(pressure(1 + step) - pressure(1 - step)) / (2 * step) / 2
    bounds = bulk_modulus(stiffness)
    # The error of the difference is step^2 times a third derivative of order 100.
    np.testing.assert_allclose([bounds.voigt, bounds.reuss], expected, rtol=1e-5)


def test_dynamics_of_a_user_potential_conserve_the_energy(x64):
    simulation = velocity_verlet(repulsion(), start, params=PARAMS, cell=cell)
    _, _, seen = jax.jit(trajectory(simulation, 400, 20))(simulation.params, jax.random.key(1))
    energy = seen["energy"]
    # Of second order: half the time step, a quarter of the error.
    half = simulation.with_params(time_step=PARAMS["time_step"] / 2)
    _, _, finer = jax.jit(trajectory(half, 800, 40))(half.params, jax.random.key(1))
    errors = [float(jnp.abs(e - e[0]).max()) for e in (energy, finer["energy"])]
    assert errors[1] < 0.4 * errors[0]
    assert errors[0] < 1e-3 * float(energy[0])


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
