"""Rigid bonds: lengths kept, exact motion, order, reversibility, derivatives, freedom, virial, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.status import Status
from simkit.molecular.constraints.groups import Groups
from simkit.molecular.dynamics import (
    velocity_verlet,
)
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats
from tests.molecular.rigid import (
    REPULSION,
    RODS,
    VALUES,
    dumbbells,
    masses,
    newtonian,
    settled,
    water,
)
from tests.molecular.test_constraints import KEY, dumbbell, moving


def test_settle_and_newton_find_the_same_positions_and_keep_lengths(x64):
    count, params = 3, floats(**VALUES)
    old = jnp.asarray(water(count))
    moved = old + 0.08 * jax.random.normal(KEY, old.shape)
    mobility = 1 / masses(count)(params)
    closed, iterated = (jax.jit(rigid(count).shift)(moved, old, mobility, params) for rigid in (settled, newtonian))
    np.testing.assert_allclose(closed, iterated, rtol=0, atol=1e-14)
    assert float(settled(count).error(moved + closed, params)) < 1e-14
    # Forces within molecules: no momentum, no angular momentum about the old positions.
    impulse = closed / mobility[:, None]
    np.testing.assert_allclose(impulse.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(jnp.cross(old, impulse).sum(axis=0), 0, atol=1e-12)


def test_rigid_water_keeps_lengths_momentum_and_energy(x64):
    simulation, init, run = moving()
    start = init(simulation.params, KEY)
    end = run(start, simulation.params, 5000)
    diagnose = jax.jit(simulation.diagnose)
    first, last = (diagnose(state, simulation.params) for state in (start, end))
    assert float(jnp.abs(end.position - start.position).max()) > 1.0
    assert float(end.bond_error) < 1e-12
    assert float(last["momentum"]) < 1e-12
    # Second order, without drift: an oscillation of (omega h)^2 / 24 of the kinetic energy.
    assert abs(float(last["energy"] - first["energy"])) < 2e-3 * float(first["kinetic_energy"])
    assert int(simulation.status(end, simulation.params)) == Status.OK


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_of_a_run_equal_central_differences(x64, mode):
    weight = user_energy(lambda position, cell, params: params["gravity"] * jnp.sum(jnp.sin(position[:, 1])))
    simulation = dumbbell(interaction=weight, isolated=False)
    names = ["length", "mass"]
    found = gradient.check_gradient(
        Objective(simulation, "potential_energy", steps=30), simulation.params, KEY, names, mode=mode
    )
    for name in names:
        assert abs(found.derivative[name]) > 1e-3, name
        assert found.relative_difference[name] < 1e-6, name


def test_the_pressure_is_that_of_a_strain_of_the_centers_of_molecules(x64):
    simulation = dumbbells(velocity_verlet)
    state = jax.jit(simulation.init)(simulation.params, KEY)
    measured = jax.jit(simulation.diagnose)(state, simulation.params)
    groups = Groups.of(RODS, jnp.ones(19), None)

    @jax.jit
    def potential(factor):
        position = groups.carried(state.position, factor * groups.centers(state.position))
        return REPULSION.energy(position, jnp.full(2, 5.0 * factor), simulation.params, ())

    slope = (potential(1 + 1e-5) - potential(1 - 1e-5)) / 2e-5
    expected = 10 * measured["temperature"] / 25.0 - slope / (2 * 25.0)
    np.testing.assert_allclose(measured["pressure"], expected, rtol=1e-8)
    assert float(state.freedom.count) == 2 * 19 - 9 - 2
