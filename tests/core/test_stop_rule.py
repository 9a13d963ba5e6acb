"""Stop rule: a run ends at the step at which its status stops it, in every driver and division into segments."""

import jax
import numpy as np

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.status import CAUTIONS, Status, stops
from tests.core.toys import oscillator

KEY, STEPS = 5, 40


def test_which_codes_stop():
    assert {code for code in Status if not stops(np.asarray(code))} == {Status.OK, *CAUTIONS}


def test_a_simulation_without_a_status_pays_for_none():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(KEY))
    assert "is_finite" not in jax.jit(segment(simulation, STEPS)).lower(state, simulation.params).as_text()
    many = ensemble(simulation)
    states = many.init(simulation.params, jax.random.split(jax.random.key(KEY), 2))
    assert "is_finite" not in jax.jit(segment(many, STEPS)).lower(states, simulation.params).as_text()
