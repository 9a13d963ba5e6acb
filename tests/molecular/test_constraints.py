"""Rigid bonds: lengths kept, exact motion, order, reversibility, derivatives, freedom, virial, and what is refused."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.molecular import constraints, spaces
from simkit.molecular.constraints.groups import Groups
from simkit.molecular.dynamics import brownian, langevin, velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from tests.molecular.dynamics.moving import floats
from tests.molecular.rigid import VALUES, atoms_of, cluster, masses, newtonian, settled, water

KEY = jax.random.key(5)
FREE = user_energy(lambda position, cell, params: 0.0 * jnp.sum(position))


def test_settle_and_newton_find_the_same_positions_and_keep_lengths(x64):
    count, params = 4, floats(**VALUES)
    old = jnp.asarray(water(count))
    moved = old + 0.08 * jax.random.normal(KEY, old.shape)
    mobility = 1 / masses(count)(params)
    closed, iterated = (rigid(count).shift(moved, old, mobility, params) for rigid in (settled, newtonian))
    np.testing.assert_allclose(closed, iterated, rtol=0, atol=1e-14)
    assert float(settled(count).error(moved + closed, params)) < 1e-14
    # Forces within molecules: no momentum, no angular momentum about the old positions.
    impulse = closed / mobility[:, None]
    np.testing.assert_allclose(impulse.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(jnp.cross(old, impulse).sum(axis=0), 0, atol=1e-12)


@functools.cache
def moving(rigid=settled):
    """Return water molecules at constant energy, and the compiled ``(state, params, steps) -> state``."""
    simulation = cluster(velocity_verlet, rigid=rigid)

    def run(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)

    return simulation, jax.jit(simulation.init), jax.jit(run)


def test_rigid_water_keeps_lengths_momentum_and_energy(x64):
    simulation, init, run = moving()
    start = init(simulation.params, KEY)
    end = run(start, simulation.params, 5000)
    first, last = (simulation.diagnose(state, simulation.params) for state in (start, end))
    assert float(jnp.abs(end.position - start.position).max()) > 1.0
    assert float(end.bond_error) < 1e-12
    assert float(last["momentum"]) < 1e-12
    # Second order, without drift: an oscillation of (omega h)^2 / 24 of the kinetic energy.
    assert abs(float(last["energy"] - first["energy"])) < 2e-3 * float(first["kinetic_energy"])
    assert int(simulation.status(end, simulation.params)) == Status.OK


def test_error_falls_with_the_square_of_the_time_step(x64):
    (simulation, init, run), ends = moving(), []
    for steps in (100, 200, 400):
        params = {**simulation.params, "time_step": jnp.asarray(1.0 / steps)}
        ends.append(run(init(params, KEY), params, steps))
    for name in ("position", "velocity"):
        coarse, middle, fine = (np.asarray(getattr(end, name)) for end in ends)
        order = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
        assert 1.95 < order < 2.05, name


def test_motion_is_reversible(x64):
    simulation, init, run = moving()
    start = init(simulation.params, KEY)
    there = run(start, simulation.params, 300)
    back = run(dataclasses.replace(there, velocity=-there.velocity), simulation.params, 300)
    assert float(jnp.abs(there.position - start.position).max()) > 0.1
    np.testing.assert_allclose(back.position, start.position, rtol=0, atol=1e-11)
    np.testing.assert_allclose(back.velocity, -start.velocity, rtol=0, atol=1e-11)


def dumbbell(**options):
    """Return two particles of masses 1 and 3 at a rigid distance of 2 in a plane, which turn about each other."""
    velocity = np.array([[0.0, 1.5], [0.0, -0.5]])
    return velocity_verlet(
        options.pop("interaction", FREE),
        lambda params, key: params["length"] * jnp.asarray([[0.0, 0.0], [1.0, 0.0]]),
        params=floats(length=2.0, time_step=0.1, mass=1.0, gravity=1.0),
        mass=lambda params: params["mass"] * jnp.asarray([1.0, 3.0]),
        velocity=lambda params, key: jnp.asarray(velocity),
        constraints=constraints.rigid_bonds([[0, 1]], "length"),
        **options,
    )


def test_a_rigid_dumbbell_turns_by_an_exact_angle_in_each_step(x64):
    simulation, steps = dumbbell(), 1000
    start = simulation.init(simulation.params, KEY)
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    # Omega = 2 / 2; velocities at whole steps are central differences of a uniform rotation: sin(angle) = Omega h.
    angle = -steps * np.arcsin(1.0 * 0.1)
    expected = 2 * np.array([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(end.position[1] - end.position[0], expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(end.velocity[1] - end.velocity[0], [-expected[1] * -1, -expected[0]], atol=1e-11)


def test_a_frozen_end_makes_a_pendulum(x64):
    weight = user_energy(lambda position, cell, params: 3 * params["gravity"] * jnp.sum(position[1, 1]))
    simulation = dumbbell(interaction=weight, frozen=[True, False], isolated=False)
    start = simulation.init(simulation.params, KEY)
    assert float(start.freedom.count) == 1
    end = jax.jit(segment(simulation, 1000))(start, simulation.params)
    np.testing.assert_array_equal(end.position[0], start.position[0])
    first, last = (simulation.diagnose(state, simulation.params) for state in (start, end))
    assert abs(float(last["energy"] - first["energy"])) < 5e-3 * 3 * 2
    assert float(end.bond_error) < 1e-14


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_of_a_run_equal_central_differences(x64, mode):
    for rigid in (settled, newtonian) if mode == "forward" else (settled,):
        simulation = cluster(langevin, count=2, rigid=rigid, friction=1.0)
        names = ["leg", "base", "charge", "mass", "temperature", "friction", "time_step"]
        found = gradient.check_gradient(
            Objective(simulation, "potential_energy", steps=40), simulation.params, KEY, names, mode=mode
        )
        for name in names:
            assert abs(found.derivative[name]) > 1e-4, name
            assert found.relative_difference[name] < 1e-6, (name, mode)
