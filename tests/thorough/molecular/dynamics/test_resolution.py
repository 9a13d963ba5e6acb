"""Detection of time steps that do not resolve the forces."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.core.status import Status, failed, status_of
from simkit.molecular import interactions
from simkit.molecular.dynamics import langevin, velocity_verlet
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every("distance", [0.1, 0.6])
def test_particles_that_separate_in_one_step_are_unresolved(distance):
    status, state = after(pair(lennard_jones, [[0.0, 0.0], [distance, 0.0]], 0.01), 50)
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


def lennard_jones(position, cell, params):
    r = jnp.sqrt(jnp.sum((position[1] - position[0]) ** 2))
    return 4 * (r**-12 - r**-6)


def spring(position, cell, params):
    return jnp.sum(position**2) / 2


def test_an_overlapping_start_is_resolved_by_short_steps():
    status, state = after(pair(lennard_jones, [[0.0, 0.0], [0.6, 0.0]], 2e-5), 2000)
    assert status == Status.OK and int(state.iteration) == 2000


# omega = 1: a step of 1/8 of a period is coarse, one of 1/5 follows nothing.
@every(("time_step", "expected"), [(0.01, Status.OK), (0.8, Status.OK), (1.3, Status.UNRESOLVED)])
def test_a_spring_is_resolved_up_to_a_sixth_of_its_period(time_step, expected):
    assert after(pair(spring, [[1.0, 0.0]], time_step), 20)[0] == expected


@every("dtype", [jnp.float32, jnp.float64])
def test_particles_at_rest_are_resolved(dtype):
    rest = 2 ** (1 / 6)
    simulation = pair(lennard_jones, [[50.0, 0.0], [50.0 + rest, 0.0]], 0.01)
    simulation = dataclasses.replace(simulation, params=jax.tree.map(lambda x: x.astype(dtype), simulation.params))
    status, state = after(simulation, 200)
    assert status == Status.OK and state.position.dtype == dtype


def test_noise_of_a_bath_does_not_count_as_unresolved():
    params = {"temperature": jnp.asarray(1.0), "friction": jnp.asarray(5.0)}
    start = np.random.default_rng(0).normal(size=(40, 2))
    assert after(pair(spring, start, 0.2, langevin, **params), 200)[0] == Status.OK
