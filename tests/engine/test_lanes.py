"""Lanes: sweeps of converging simulations, with the results of single runs."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.ensemble import ensemble
from simkit.engine.driver import Plan, Program
from simkit.engine.lanes import SEGMENTS, Queue
from simkit.storage.store import Store
from tests.core import toys
from tests.stopping import StopAfter, Stopped
from tests.toys import SPRINGS, toy

# Stiff chains come to rest more than twice as fast as soft ones.
OVER = {"stiffness": [1.0, 4.0, 2.0, 3.0], "rest": [1.0, 1.5]}


def springs(**values):
    return toy(SPRINGS, every=10, **values)


@functools.cache
def swept(chunk=None):
    return simkit.sweep(springs(), OVER, seeds=2, chunk=chunk)


def countdown(
    store=None, *, lanes, values, plan=None, report=lambda fraction, words: None, calls=None, warn=pytest.fail
):
    """Run members whose value is their number of steps, and return the result of each."""
    member = toys.countdown()
    plan = plan or Plan(40, 1, least_segments=8)
    numbers = np.asarray(values, np.float32)
    silent = dataclasses.replace(ensemble(member, ["value"]), observe=lambda state, params: {})
    program = Program.of(silent, plan)
    if calls is not None:
        record = program.record
        program = dataclasses.replace(program, record=lambda *given: (given[2] and calls.append(1)) or record(*given))
    queue = Queue(
        program,
        plan,
        len(numbers),
        lanes,
        lambda members: ({"value": jnp.asarray(numbers[members])}, jax.vmap(jax.random.key)(members)),
        jax.jit(jax.vmap(member.observe, in_axes=(0, {"value": 0}))),
    )
    return queue.run(store, report, warn)


def test_a_slow_member_does_not_delay_the_others():
    # Twenty segments of five steps each; the eleven others need one each and share the second lane.
    plan, calls = Plan(100, 1, least_segments=20), []
    countdown(lanes=2, values=[100.5] + [4.0] * 11, plan=plan, calls=calls)
    assert len(calls) == 20
    # In chunks of two the first would take all twenty as well, and the others then five more.


@pytest.mark.parametrize("stop", [1, 7])
def test_an_interrupted_queue_resumes_bit_for_bit(stop, tmp_path):
    assert_resumes(stop, tmp_path)


def assert_resumes(stop, tmp_path):
    report = StopAfter(stop)
    values = [30.5, 3.0, 17.0, 1.0, 9.0, 0.0, -1.0, 12.0, 40.5]
    expected = countdown(lanes=2, values=values)
    with pytest.raises(Stopped):
        countdown(Store(tmp_path), lanes=2, values=values, report=report)
    assert report.calls == sorted(report.calls)
    found = countdown(Store(tmp_path), lanes=2, values=values)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_segments_of_lanes_are_short():
    assert Plan(8000, 10, SEGMENTS).segments == SEGMENTS
