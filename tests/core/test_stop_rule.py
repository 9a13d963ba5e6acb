"""Stop rule: a run ends at the step at which its status stops it, in every driver and division into segments."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment, trajectory
from simkit.core.status import CAUTIONS, Status, stops
from simkit.engine.driver import Plan
from tests.core.cases import cases
from tests.core.toys import oscillator
from tests.driving import drive

KEY, STEPS = 5, 40


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


@cases(
    ("code", "every"),
    [(Status.CONVERGED, 1), (Status.STALLED, 8), (Status.IMPACT_OVERFLOW, 40), (Status.BUFFER_OVERFLOW, 8)],
)
def test_a_status_that_stops_holds_the_state_at_that_step(code, every):
    simulation = counter(*[Status.OK] * 7, code, Status.OK)
    states = list(ends(simulation, every))
    assert [int(state["steps"]) for state in states] == [7] * len(states)
    assert len({float(state["value"]) for state in states}) == 1


@cases("every", [8])
def test_a_caution_does_not_stop(every):
    simulation = counter(Status.OK, Status.OK, Status.BRIEF_CONTACT)
    assert [int(state["steps"]) for state in ends(simulation, every)] == [STEPS] * 5
    pieces = list(drive(simulation, simulation.params, jax.random.key(KEY), Plan(STEPS, every)))
    assert sum(len(piece.arrays["status"]) for piece in pieces) == STEPS // every + 1


def test_which_codes_stop():
    assert {code for code in Status if not stops(np.asarray(code))} == {Status.OK, *CAUTIONS}


def test_a_simulation_without_a_status_pays_for_none():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(KEY))
    assert "is_finite" not in jax.jit(segment(simulation, STEPS)).lower(state, simulation.params).as_text()
    many = ensemble(simulation)
    states = many.init(simulation.params, jax.random.split(jax.random.key(KEY), 2))
    assert "is_finite" not in jax.jit(segment(many, STEPS)).lower(states, simulation.params).as_text()
