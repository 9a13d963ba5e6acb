"""Ensembles equal loops over their members, the longer ones."""

import jax

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.status import Status, status_of
from tests.core.toys import descent


def test_members_that_have_stopped_keep_their_state(x64):
    simulation = descent(tolerance=1e-6)
    many = ensemble(simulation)
    keys = jax.random.split(jax.random.key(1), 4)
    state = many.init(simulation.params, keys)
    state = jax.jit(segment(many, 5000))(state, simulation.params)
    assert (status_of(many)(state, simulation.params) == Status.CONVERGED).all()
    alone = [segment(simulation, 5000)(simulation.init(simulation.params, key), simulation.params) for key in keys]
    assert list(state.iteration) == [int(a.iteration) for a in alone]
    assert len(set(map(int, state.iteration))) > 1
