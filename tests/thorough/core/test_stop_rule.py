"""Stop rule of relaxations that stall, in every driver: the longer tests."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.converge import converge
from simkit.core.ensemble import ensemble, in_flight
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.engine.driver import Plan
from tests.core.test_stop_rule import KEY
from tests.driving import drive


def test_a_stalled_relaxation_ends_at_the_same_iteration_in_every_driver():
    from tests.molecular.clusters import cluster

    # Single precision cannot bring the force below some 1e-5.
    simulation, steps = cluster(particles=7, force_tolerance=1e-12), 2000
    params, key = simulation.params, jax.random.key(KEY)
    start = jax.jit(simulation.init)(params, key)
    last = jax.jit(trajectory(simulation, steps, 100))(params, key)[0]
    driven = list(drive(simulation, params, key, Plan(steps, 20)))[-1].state
    converged = jax.jit(converge(simulation, steps))(start, params)
    assert int(converged.status) == Status.STALLED
    iterations = int(converged.iterations)
    assert iterations < steps
    for state in (last, driven, converged.state):
        assert int(state.descent.iteration) == iterations
        np.testing.assert_array_equal(state.descent.position, last.descent.position)
    # A batch of one may be rounded in another way; each of the two that are batched ends when it has stalled.
    keys = jnp.stack([key, jax.random.key(KEY + 1)])
    states = jax.jit(jax.vmap(simulation.init, (None, 0)))(params, keys)
    together = jax.jit(segment(ensemble(simulation), steps))(states, params)
    flown = jax.jit(in_flight(simulation, lanes=2, max_steps=steps))(states, params)
    np.testing.assert_array_equal(flown.status, Status.STALLED)
    np.testing.assert_array_equal(together.descent.iteration, flown.iterations)
    np.testing.assert_array_equal(together.descent.position, flown.state.descent.position)
