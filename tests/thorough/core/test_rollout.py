"""Segments, trajectories and their memory, the longer ones."""

import jax
import numpy as np
import pytest

from simkit.core import rollout
from simkit.core.objective import Objective
from tests.core.test_rollout import KEY, temporary_bytes
from tests.core.toys import oscillator


def test_smallest_reverse_mode_memory_grows_like_the_logarithm_of_the_steps():
    # log(10000) / log(100) = 2, plus the rounding of the number of levels.
    assert temporary_bytes(10_000, "smallest") <= 3 * temporary_bytes(100, "smallest")
    assert temporary_bytes(10_000, "smallest") <= temporary_bytes(10_000, "balanced")


def test_reverse_mode_memory_of_a_reduced_series_grows_like_the_square_root():
    def temporary(steps):
        simulation = oscillator(4096)
        objective = Objective(simulation, "energy", steps, every=10, reduce="mean")
        compiled = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(KEY)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary(10_000) <= 12 * temporary(100)


@pytest.mark.parametrize("memory", ["balanced", "smallest"])
@pytest.mark.parametrize("little", [0, rollout.SMALL_BYTES])
def test_rematerialization_does_not_change_the_derivative(x64, memory, little, monkeypatch):
    monkeypatch.setattr(rollout, "SMALL_BYTES", little)
    simulation, key = oscillator(), jax.random.key(KEY)

    def plain(params):
        state = simulation.init(params, key)
        for _ in range(30):
            state = simulation.step(state, params)
        return simulation.diagnose(state, params)["energy"]

    expected = jax.grad(plain)(simulation.params)
    found = jax.grad(Objective(simulation, "energy", 30, memory=memory))(simulation.params, key)
    for name in expected:
        # Same operations in another order of accumulation: round-off of a sum of 30 terms.
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
