"""Running means: values, derivatives, independence of the division into segments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.averages import averaged
from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from tests.core.toys import oscillator
from tests.tables import every

EVERY, SKIP = 3, 4


def sample(state, params):
    return {"square": state.position[0] ** 2 * params["frequency"], "position": state.position}


def mean_oscillator(every=EVERY, skip=SKIP):
    return averaged(
        oscillator(2),
        sample,
        every=every,
        skip=skip,
        observe=lambda mean, params: {"mean_position": mean["position"]},
        diagnose=lambda mean, params: {"mean_square": mean["square"]},
        dimensions={"mean_position": ("oscillator",)},
        coordinates={"oscillator": np.arange(2)},
    )


def test_a_run_that_has_no_sample_yet_has_not_failed(x64):
    simulation = mean_oscillator()
    state = jax.jit(segment(simulation, SKIP))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert np.isnan(simulation.diagnose(state, simulation.params)["mean_square"])
    assert int(status_of(simulation)(state, simulation.params)) == Status.OK


def test_cutting_a_run_changes_nothing_and_members_equal_single_runs(x64):
    simulation, key = mean_oscillator(), jax.random.key(1)
    start = simulation.init(simulation.params, key)
    run = jax.jit(segment(simulation, 5))
    twice = run(run(start, simulation.params), simulation.params)
    once = jax.jit(segment(simulation, 10))(start, simulation.params)
    for a, b in zip(jax.tree.leaves(twice.mean), jax.tree.leaves(once.mean), strict=True):
        np.testing.assert_array_equal(a, b)
    many = ensemble(simulation)
    keys = jnp.stack([key, jax.random.key(2)])
    together = jax.jit(segment(many, 10))(many.init(simulation.params, keys), simulation.params)
    np.testing.assert_allclose(together.mean["square"][0], once.mean["square"], rtol=1e-13)


def test_mean_in_single_precision_follows_a_hundred_thousand_samples():
    """The samples rise from 1000 by 1e-5 a step: without care the mean stands still once changes are rounded off."""
    rising = Simulation(
        init=lambda params, key: jnp.int32(0),
        step=lambda state, params: state + 1,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"iteration": state},
        params={"start": jnp.float32(1000)},
    )
    simulation = averaged(
        rising, lambda n, params: {"x": params["start"] + n.astype(jnp.float32) * 1e-5}, every=1, skip=0
    )
    count = 100_000
    run = jax.jit(segment(simulation, count))
    found = run(simulation.init(simulation.params, jax.random.key(0)), simulation.params).mean["x"]
    exact = np.mean(np.float64(np.float32(1000) + np.arange(1, count + 1, dtype=np.float32) * np.float32(1e-5)))
    # The exact mean of the rounded samples, to half of the last bit of 1000, 3e-5, and a bit of that for the weights.
    assert abs(float(found) - exact) < 4e-5


@every(("values", "message"), [({"every": 0}, "every = 0"), ({"skip": -1}, "skip = -1 is negative")])
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        mean_oscillator(**values)
