"""Segments, trajectories and their memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import rollout
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from tests.core.cases import cases
from tests.core.toys import oscillator

KEY = 7


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@cases(
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


@cases(("steps", "every"), [(0, 1), (10, 3), (5, 10), (10, 0)])
def test_steps_that_are_no_multiple_of_every_are_refused(steps, every):
    with pytest.raises(ValueError, match="not a positive multiple"):
        trajectory(oscillator(), steps, every)


def temporary_bytes(steps, memory, size=4096):
    simulation = oscillator(size)
    objective = Objective(simulation, "energy", steps, memory=memory)
    compiled = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(KEY)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_reverse_mode_memory_grows_like_the_square_root_of_the_steps():
    # sqrt(10000 / 100) = 10; 12 allows for memory that does not depend on the number of steps.
    assert temporary_bytes(10_000, "balanced") <= 12 * temporary_bytes(100, "balanced")


def test_small_states_are_stored_in_one_loop():
    def loops(size, steps):
        simulation = oscillator(size)
        state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(KEY))
        return str(jax.make_jaxpr(segment(simulation, steps))(state, simulation.params)).count("scan[")

    assert loops(1, 200) == 1
    assert loops(4096, 200) == 2


def test_states_keep_their_types_through_a_segment():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(KEY))
    advanced = jax.eval_shape(segment(simulation, 3), state, simulation.params)
    assert jax.tree.map(lambda a: a.dtype, advanced) == jax.tree.map(lambda a: jnp.asarray(a).dtype, state)


def test_numbers_of_steps_may_be_integers_of_any_kind():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(0))
    expected = segment(simulation, 4)(state, simulation.params)
    for steps in (np.int64(4), jnp.int32(4)):
        np.testing.assert_array_equal(segment(simulation, steps)(state, simulation.params).position, expected.position)
        frames = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))[2]
        assert len(next(iter(frames.values()))) == 2
    with pytest.raises(TypeError):
        segment(simulation, 4.0)
