"""Molecular dynamics: neighbor lists, overflows, batches, and diagnostics."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.dynamics import langevin, maxwell_boltzmann, velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats, tetramer
from tests.tables import every


def test_velocities_of_an_isolated_system_have_no_drift_and_the_right_spread(x64):
    mass = jnp.asarray(np.linspace(0.5, 4.0, 20_000))[:, None]
    draw = functools.partial(maxwell_boltzmann, jax.random.key(3), jnp.asarray(1.7), mass, (*mass.shape[:1], 3))
    still, drifting = draw(drift=False), draw(drift=True)
    # Round-off of 20,000 terms of order one, against a random momentum of sqrt(T sum m) = 277 with drift.
    assert float(jnp.abs(jnp.sum(mass * still, axis=0)).max()) < 1e-9
    assert float(jnp.abs(jnp.sum(mass * drifting, axis=0)).max()) > 1
    # 60,000 squares: sqrt(2 / 60,000) = 0.6 %, four of them.
    assert float(jnp.mean(mass * still**2)) == pytest.approx(1.7, rel=0.025)


def test_free_space_has_neither_box_nor_pressure(x64):
    simulation = tetramer()
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    assert "pressure" not in jax.eval_shape(simulation.diagnose, state, simulation.params)
    assert set(jax.eval_shape(simulation.observe, state, simulation.params)) == {"position", "velocity", "speed"}


@every("dynamics", [velocity_verlet, langevin])
@every("missing", ["time_step", "mass", "temperature"])
def test_missing_parameter_is_named(dynamics, missing):
    params = floats(stiffness=1.0, mass=1.0, temperature=1.0, friction=1.0, time_step=0.1)
    del params[missing]
    with pytest.raises(UserError, match=f"params lack '{missing}'; there are friction, "):
        dynamics(
            user_energy(lambda x, cell, params: jnp.sum(x**2)), lambda params, key: jnp.zeros((2, 2)), params=params
        )


def test_a_missing_friction_and_a_single_isolated_particle_are_refused():
    params = floats(mass=1.0, temperature=1.0, time_step=0.1)
    well = user_energy(lambda position, cell, params: jnp.sum(position**2))
    with pytest.raises(UserError, match="params lack 'friction'"):
        langevin(well, lambda params, key: jnp.zeros((1, 2)), params=params)
    alone = velocity_verlet(well, lambda params, key: jnp.zeros((1, 2)), params=params)
    with pytest.raises(UserError, match="isolated = true needs at least 2 particles"):
        alone.init(params, jax.random.key(0))
