"""Stop rule of relaxations that stall, in every driver: the longer tests."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.converge import converge
from simkit.core.ensemble import ensemble, in_flight
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.engine.driver import Plan
from tests.core.test_stop_rule import KEY, STEPS
from tests.core.toys import oscillator
from tests.driving import drive
from tests.tables import every


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


def counter(*codes):
    """Counts its steps; its status is the code whose turn it is."""

    def status(state, params):
        return jnp.asarray(codes, jnp.int32)[jnp.minimum(state["steps"], len(codes) - 1)]

    return dataclasses.replace(
        oscillator(),
        init=lambda params, key: {"steps": jnp.int32(0), "value": params["frequency"]},
        step=lambda state, params: {"steps": state["steps"] + 1, "value": state["value"] * 1.01},
        observe=lambda state, params: {"position": state["value"][None]},
        diagnose=lambda state, params: {"time": state["value"], "steps": state["steps"]},
        status=status,
    )


def ends(simulation, every):
    """Return the last state of every way to run a simulation, one after the other."""
    params, key = simulation.params, jax.random.key(KEY)
    state = simulation.init(params, key)
    yield jax.jit(trajectory(simulation, STEPS, every))(params, key)[0]
    yield jax.jit(segment(simulation, STEPS))(state, params)
    yield list(drive(simulation, params, key, Plan(STEPS, every)))[-1].state
    many, keys = ensemble(simulation), jnp.stack([key, key])
    for last in (
        jax.jit(trajectory(many, STEPS, every))(params, keys)[0],
        list(drive(many, params, keys, Plan(STEPS, every)))[-1].state,
    ):
        yield jax.tree.map(lambda leaf: leaf[0], last)


@every(
    ("code", "every"),
    [(Status.CONVERGED, 1), (Status.STALLED, 8), (Status.IMPACT_OVERFLOW, 40), (Status.BUFFER_OVERFLOW, 8)],
)
def test_a_status_that_stops_holds_the_state_at_that_step(code, every):
    simulation = counter(*[Status.OK] * 7, code, Status.OK)
    states = list(ends(simulation, every))
    assert [int(state["steps"]) for state in states] == [7] * len(states)
    assert len({float(state["value"]) for state in states}) == 1


@every("every", [8])
def test_a_caution_does_not_stop(every):
    simulation = counter(Status.OK, Status.OK, Status.BRIEF_CONTACT)
    assert [int(state["steps"]) for state in ends(simulation, every)] == [STEPS] * 5
    pieces = list(drive(simulation, simulation.params, jax.random.key(KEY), Plan(STEPS, every)))
    assert sum(len(piece.arrays["status"]) for piece in pieces) == STEPS // every + 1
