"""Segments, trajectories and their memory, the longer ones."""

import jax
import numpy as np
import pytest

from simkit.core import rollout
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from tests.core.test_rollout import KEY, temporary_bytes
from tests.core.toys import oscillator
from tests.tables import every


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


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@every(
    ("steps", "memory"),
    [(1, "smallest"), (7, "balanced"), (12, "smallest"), (97, "balanced"), (100, "smallest"), (1000, "balanced")],
)
def test_trajectory_equals_a_host_loop_over_segments_bit_for_bit(steps, memory, monkeypatch):
    monkeypatch.setattr(rollout, "SMALL_BYTES", 0)
    simulation, key = oscillator(), jax.random.key(KEY)
    every = next(e for e in (10, 4, 1) if steps % e == 0)
    state, frames, diagnostics = jax.jit(trajectory(simulation, steps, every, memory=memory))(simulation.params, key)

    advance = jax.jit(segment(simulation, every))
    looped = jax.jit(simulation.init)(simulation.params, key)
    positions = [looped.position]
    for _ in range(steps // every):
        looped = advance(looped, simulation.params)
        positions.append(looped.position)
    assert equal((state.position, state.velocity, state.time), (looped.position, looped.velocity, looped.time))
    assert np.array_equal(frames["position"], np.stack(positions))
    assert diagnostics["time"].shape == (steps // every + 1,)


def test_reverse_mode_memory_grows_like_the_square_root_of_the_steps():
    # sqrt(10000 / 100) = 10; 12 allows for memory that does not depend on the number of steps.
    assert temporary_bytes(10_000, "balanced") <= 12 * temporary_bytes(100, "balanced")
