"""Rigid bonds: derivatives in every bath, distributions known in closed form, and constrained minima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.converge import converge
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.molecular import constraints
from simkit.molecular.dynamics import bussi, langevin, nose_hoover, stochastic_cell_rescaling, velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from tests.molecular.dynamics.moving import floats
from tests.molecular.rigid import attraction, cluster, dumbbells, newtonian, settled, water

KEY = jax.random.key(5)
BAROSTAT = {"pressure": 1.0, "compressibility": 0.1, "barostat_time": 1.0, "thermostat_time": 0.5}


@pytest.mark.parametrize("rigid", [settled, newtonian])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_of_rigid_water_in_a_bath_equal_central_differences(x64, mode, rigid):
    simulation = cluster(langevin, count=2, rigid=rigid, friction=1.0)
    names = ["leg", "base", "charge", "mass", "temperature", "friction", "time_step"]
    found = gradient.check_gradient(
        Objective(simulation, "potential_energy", steps=40), simulation.params, KEY, names, mode=mode
    )
    for name in names:
        assert abs(found.derivative[name]) > 1e-4, name
        assert found.relative_difference[name] < 1e-6, name


def test_every_bath_keeps_bonds_across_the_faces_of_a_cell_that_moves():
    barostat = stochastic_cell_rescaling(isotropic=False)
    for dynamics in (langevin, nose_hoover, bussi):
        simulation = dumbbells(dynamics, "float32", params=floats(**BAROSTAT), barostat=barostat)
        states = jax.vmap(simulation.init, (None, 0))(simulation.params, jax.random.split(KEY, 2))
        advance = jax.jit(jax.vmap(segment(simulation, 50), (0, None)))
        end = advance(states, simulation.params)
        assert (np.abs(end.cell - 5.0) > 1e-3).all()
        assert float(end.bond_error.max()) < 1e-5
        assert (jax.vmap(simulation.status, (0, None))(end, simulation.params) == Status.OK).all()


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_through_a_barostat_equal_central_differences(x64, mode):
    simulation = dumbbells(langevin, params=floats(**BAROSTAT), barostat=stochastic_cell_rescaling())
    names = ["length", "strength", "pressure", "mass"]
    found = gradient.check_gradient(Objective(simulation, "volume", steps=30), simulation.params, KEY, names, mode=mode)
    for name in names:
        assert found.relative_difference[name] < 1e-6, name


def resting(rigid=settled):
    """Return two rigid water molecules that relax, and measure the distance of their oxygen atoms."""
    return relaxation(
        constraints.projected(attraction(2), rigid(2), lambda params: 20.0),
        lambda params, key: jnp.asarray(water(2)),
        params=floats(leg=1.0, base=1.633, charge=0.8),
        scale=lambda params: Scale(1.0, 20.0),
        force_tolerance=1e-13,
        measure=lambda position, cell, params: {"distance": jnp.linalg.norm(position[0] - position[3])},
    )


def test_a_relaxed_structure_keeps_lengths_and_has_the_derivative_of_the_constrained_minimum(x64):
    simulation = resting()
    relaxed = jax.jit(converge(simulation, 500))(simulation.init(simulation.params, KEY), simulation.params)
    assert int(relaxed.status) == Status.CONVERGED
    assert float(settled(2).error(relaxed.state.descent.position, simulation.params)) < 1e-9
    names = ["leg", "base", "charge"]
    found = gradient.check_gradient(Objective(simulation, "distance", steps=500), simulation.params, KEY, names)
    for name in names:
        assert abs(found.derivative[name]) > 1e-3, name
        assert found.relative_difference[name] < 1e-6, name


FREE = user_energy(lambda position, cell, params: 0.0 * jnp.sum(position))


def gas(dynamics, bonds, places, **options):
    """Return molecules that do not act on each other; places are those of one of them, (n, 3)."""
    count, size = 2000, len(places)
    pairs = (np.asarray(bonds) + size * np.arange(count)[:, None, None]).reshape(-1, 2)
    given = floats(length=1.0, time_step=0.1, mass=1.0, temperature=2.0, friction=1.0)
    return dynamics(
        FREE,
        lambda params, key: jnp.tile(jnp.asarray(places), (count, 1)),
        params=given | options.pop("params", {}),
        constraints=constraints.rigid_bonds(pairs, "length"),
        **options,
    )


def test_the_angle_of_two_rigid_bonds_is_distributed_as_rigid_bonds_demand(x64):
    # Frenkel and Smit, Understanding Molecular Simulation, section 11.2: density sqrt(1 - cos^2 / 4), where stiff
    # springs would give a uniform cosine.
    simulation = gas(langevin, [[0, 1], [1, 2]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    _, frames, diagnostics = jax.jit(trajectory(simulation, 400, 20))(simulation.params, KEY)
    bonds = np.diff(np.asarray(frames["position"])[5:].reshape(-1, 3, 3), axis=1)
    cosine = np.sum(bonds[:, 0] * bonds[:, 1], axis=1)
    grid = (np.arange(1000) + 0.5) / 1000
    weight = np.sqrt(1 - grid**2 / 4)
    expected = np.sum(grid**2 * weight) / np.sum(weight)
    # 32,000 angles, a third of them independent: an error of 0.003; the cosine of springs differs by 0.0116.
    assert abs(np.mean(cosine**2) - expected) < 0.008
    # Seven degrees of freedom a molecule: 112,000 numbers, sqrt(2 / 37,000) = 0.7 %.
    np.testing.assert_allclose(np.mean(diagnostics["temperature"][5:]), 2.0, rtol=0.02)


def test_the_volume_of_a_gas_of_rigid_rods_is_that_of_its_molecules(x64):
    barostat = floats(pressure=2.0, compressibility=0.5, barostat_time=1.0)
    simulation = gas(
        langevin,
        [[0, 1]],
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        params=barostat,
        cell=lambda params: jnp.full(3, 12.0),
        barostat=stochastic_cell_rescaling(),
    )
    _, _, diagnostics = jax.jit(trajectory(simulation, 2000, 20))(simulation.params, KEY)
    # N T / p = 2000; its relative spread of 1/sqrt(2000) is divided by that of 40 independent volumes.
    np.testing.assert_allclose(np.mean(diagnostics["volume"][20:]), 2000, rtol=0.015)
    np.testing.assert_allclose(np.mean(diagnostics["pressure"][20:]), 2.0, rtol=0.015)


def test_energy_of_rigid_water_does_not_drift(x64):
    simulation = cluster(velocity_verlet, count=8, charge=1.5, temperature=0.2, time_step=0.005)
    _, _, found = jax.jit(trajectory(simulation, 40_000, 20))(simulation.params, KEY)
    quarters = np.split(np.asarray(found["energy"])[1:], 4)
    spread = quarters[1].std()
    assert spread < 1e-5 * float(found["kinetic_energy"][0])
    # Molecules leave their lattice in the first quarter.
    assert abs(quarters[1].mean() - quarters[3].mean()) < 0.2 * spread
    assert float(found["bond_error"].max()) < 1e-12
