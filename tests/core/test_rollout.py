"""Segments, trajectories and their memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from tests.core.toys import oscillator
from tests.tables import every

KEY = 7


@every(("steps", "every"), [(0, 1), (10, 3), (5, 10), (10, 0)])
def test_steps_that_are_no_multiple_of_every_are_refused(steps, every):
    with pytest.raises(ValueError, match="not a positive multiple"):
        trajectory(oscillator(), steps, every)


def temporary_bytes(steps, memory, size=4096):
    simulation = oscillator(size)
    objective = Objective(simulation, "energy", steps, memory=memory)
    compiled = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(KEY)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


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
