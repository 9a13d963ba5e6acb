"""Buffers: a run whose buffer overflows equals the run with a large buffer from the start, the longer ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.averages import averaged
from simkit.core.converge import converge_with_growth
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.status import Status
from simkit.storage.store import Store
from tests.core.test_buffers import assert_same, recorded, search, swing


def test_buffers_of_ensembles_and_averages_grow(x64):
    keys, frequency = jax.random.split(jax.random.key(0), 3), jnp.asarray([0.5, 4.0, 2.0])
    for wrap in (
        lambda member: ensemble(member, ["frequency"]),
        lambda member: ensemble(averaged(member, lambda s, p: {"x": s.angle}, every=1, skip=0), ["frequency"]),
    ):
        small, large = wrap(swing()), wrap(swing(64))
        params = small.params | {"frequency": frequency}
        grown, pieces = recorded(small, keys, params=params)
        roomy, _ = recorded(large, keys, params=params)
        assert not np.any(pieces[-1].status == Status.BUFFER_OVERFLOW)
        assert_same(grown, roomy)


def test_added_quantities_are_kept_when_buffers_grow(x64):
    bare = search()
    simulation = bare.with_quantities(square=lambda state, params: state.x**2).with_params(target=3.0)
    grown, end = converge_with_growth(simulation, 100)(simulation.params, jax.random.key(0))
    assert int(end.status) == Status.CONVERGED
    assert end.state.trials.capacity >= 22
    assert float(grown.params["target"]) == 3.0
    assert float(grown.diagnose(end.state, grown.params)["square"]) == pytest.approx(9, rel=1e-6)
    near = Objective(simulation, "square", steps=100).continuation(simulation.params, jax.random.key(0))
    assert float(jax.grad(near)(simulation.params)["target"]) == pytest.approx(6, rel=1e-6)


@pytest.mark.parametrize("objective", ["last", "time_mean(last, after=1)"])
def test_a_derivative_is_that_of_the_run_with_large_buffers(objective, x64, recwarn):
    def timed(capacity):
        def last(state, params):
            return jnp.max(state.passages.times) / params["frequency"]

        return swing(capacity).with_quantities(last=last)

    found, expected = (
        simkit.value_and_grad(timed(capacity), "frequency", objective=objective, steps=200) for capacity in (1, 64)
    )
    assert found == expected and not recwarn
    if objective == "last":
        small = timed(1)
        checked = simkit.check_gradient(Objective(small, "last", 200), small.params, jax.random.key(0), "frequency")
        assert checked.value == expected[0] and checked.verdict == {"frequency": "agrees"}


PASSAGES = 25


def test_a_run_that_overflows_equals_the_run_with_large_buffers_bit_for_bit(x64):
    grown, pieces = recorded(swing())
    roomy, _ = recorded(swing(64))
    assert pieces[0].state.passages.capacity == 1 < PASSAGES < pieces[-1].state.passages.capacity < 64
    assert grown["diagnosed.passages"][-1] == PASSAGES
    # Sums of the same times and of unused zeros.
    assert_same(grown, roomy)


def test_a_run_interrupted_after_its_buffers_grew_is_resumed(x64, tmp_path):
    whole, _ = recorded(swing())
    _, pieces = recorded(swing(), store=Store(tmp_path), stop=20)
    assert pieces[-1].state.passages.capacity > 1
    recorded(swing(), store=Store(tmp_path))
    stored = Store(tmp_path).read()
    assert_same({name: np.concatenate([arrays[name] for arrays in stored]) for name in whole}, whole)
