import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.status import Status
from simkit.engine.driver import SEGMENTS, Plan, Program, final_status
from simkit.storage.store import Store
from tests.core.toys import descent, oscillator
from tests.driving import drive

pytestmark = pytest.mark.usefixtures("x64")

KEY = 5


def segments_of(simulation, plan, **options):
    return list(drive(simulation, simulation.params, jax.random.key(KEY), plan, **options))


def test_plan_divides_a_run_into_equal_segments():
    for frames in [*range(1, 130), 997, 1000, 22_000, 65_536]:
        plan = Plan(frames * 3, 3)
        assert plan.frames == frames
        assert plan.segments * plan.frames_per_segment == frames
        # At least the minimum number of segments, if there are as many frames, and no more than needed.
        assert plan.segments >= min(SEGMENTS, frames)
        larger = range(plan.frames_per_segment + 1, frames // SEGMENTS + 1)
        assert not any(frames % divisor == 0 for divisor in larger)


def test_plan_of_the_longest_run_is_computed_quickly():
    plan = Plan(2**31 - 2, 1)
    assert plan.segments * plan.frames_per_segment == 2**31 - 2


def test_frames_are_taken_at_their_steps_with_the_initial_one_first():
    simulation = oscillator()
    plan = Plan(80, 2)
    segments = segments_of(simulation, plan)
    assert [segment.index for segment in segments] == list(range(plan.segments + 1))
    assert [len(segment.arrays["status"]) for segment in segments] == [1] + [plan.frames_per_segment] * plan.segments
    assert [segment.finished for segment in segments] == [False] * plan.segments + [True]
    time = np.concatenate([segment.arrays["diagnosed.time"] for segment in segments])
    # Sums of up to 80 steps round by at most 80 eps.
    np.testing.assert_allclose(time, 0.01 * np.arange(0, 81, 2), rtol=80 * np.finfo(float).eps)


def test_run_stops_at_the_frame_in_which_it_converges():
    simulation = descent(tolerance=1e-6)
    plan = Plan(2000, 5)
    segments = segments_of(simulation, plan)
    status = np.concatenate([segment.arrays["status"] for segment in segments])
    assert status[-1] == Status.CONVERGED and (status[:-1] == Status.OK).all()
    assert segments[-1].finished and segments[-1].index < plan.segments
    iterations = np.concatenate([segment.arrays["diagnosed.iteration"] for segment in segments])
    # The run converges between two frames; the last frame is that state.
    assert 0 < iterations[-1] - iterations[-2] <= 5
    assert final_status(simulation, segments[-1].status) == Status.CONVERGED


def test_run_that_does_not_converge_ends_with_max_steps():
    simulation = descent(tolerance=1e-6)
    last = segments_of(simulation, Plan(10, 5))[-1]
    assert last.status == Status.OK
    assert final_status(simulation, last.status) == Status.MAX_STEPS
    fixed = oscillator()
    assert final_status(fixed, segments_of(fixed, Plan(10, 5))[-1].status) == Status.OK


def exploding(after):
    """An oscillator that turns NaN at a given time and later finite again."""
    simulation = oscillator()

    def step(state, params):
        state = simulation.step(state, params)
        bad = (state.time > after) & (state.time < 2 * after)
        return dataclasses.replace(state, velocity=jnp.where(bad, jnp.nan, jnp.ones_like(state.velocity)))

    return dataclasses.replace(simulation, step=step)


def test_run_stops_at_the_frame_in_which_it_turns_non_finite():
    segments = segments_of(exploding(0.1), Plan(100, 1))
    status = np.concatenate([segment.arrays["status"] for segment in segments])
    assert status[-1] == Status.NON_FINITE and (status[:-1] == Status.OK).all()
    assert len(status) == 12  # the initial frame, ten finite ones, the non-finite one


def test_stopped_run_stays_stopped_when_it_is_resumed(tmp_path):
    # Each segment has 5 frames: frames computed after the failure must not be stored.
    simulation, plan = exploding(0.03), Plan(100, 1)
    first = segments_of(simulation, plan, store=Store(tmp_path))
    again = segments_of(simulation, plan, store=Store(tmp_path))
    assert [segment.index for segment in again] == [first[-1].index]
    assert again[0].finished and again[0].status == Status.NON_FINITE


def test_resumed_run_yields_its_last_stored_segment_first(tmp_path):
    simulation, plan = oscillator(), Plan(60, 3)
    program = Program.of(simulation, plan)
    running = drive(simulation, simulation.params, jax.random.key(KEY), plan, store=Store(tmp_path), program=program)
    stored = [next(running) for _ in range(4)][-1]
    resumed = next(drive(simulation, simulation.params, jax.random.key(KEY), plan, store=Store(tmp_path)))
    assert resumed.index == stored.index == 3
    assert resumed.arrays.keys() == stored.arrays.keys()
    for name, array in stored.arrays.items():
        np.testing.assert_array_equal(resumed.arrays[name], array)
    np.testing.assert_array_equal(resumed.state.position, stored.state.position)


def test_program_is_reused_for_other_values_and_keys():
    simulation, plan = oscillator(), Plan(20, 1)
    program = Program.of(simulation, plan)
    for frequency in (1.0, 2.0):
        changed = simulation.with_params(frequency=frequency)
        fresh, reused = (segments_of(changed, plan, program=given)[-1] for given in (None, program))
        np.testing.assert_array_equal(fresh.state.position, reused.state.position)
    assert program.record._cache_size() == 1
