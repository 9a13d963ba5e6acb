"""Lanes: sweeps of converging simulations, with the results of single runs."""

import dataclasses
import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.ensemble import ensemble
from simkit.core.simulation import Simulation
from simkit.core.status import Status
from simkit.engine.driver import Plan, Program
from simkit.engine.lanes import SEGMENTS, Queue
from simkit.storage.files import UNBOUND, read_arrays, write_arrays
from simkit.storage.store import Store
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
    member = Simulation(
        init=lambda params, key: params["value"],
        step=lambda state, params: jnp.where(state < 0, jnp.nan, state - 1),
        observe=lambda state, params: {"state": state},
        diagnose=lambda state, params: {"left": state},
        params={"value": jnp.asarray(1.0, dtype=float)},
        converges=True,
        # A member at 13.25 never converges.
        status=lambda state, params: jnp.where(
            jnp.isnan(state),
            Status.NON_FINITE,
            jnp.where(state == 13.25, Status.STALLED, jnp.where(state == 0, Status.CONVERGED, Status.OK)),
        ).astype(jnp.int32),
    )
    plan = plan or Plan(40, 1, least_segments=8)
    numbers = np.asarray(values, np.float32)
    silent = dataclasses.replace(ensemble(member, ["value"]), observe=lambda state, params: {})
    program = Program.of(silent, plan)
    if calls is not None:
        advance = program.advance
        program = dataclasses.replace(program, advance=lambda *given: calls.append(1) or advance(*given))
    queue = Queue(
        program,
        plan,
        len(numbers),
        lanes,
        lambda members: ({"value": jnp.asarray(numbers[members])}, jax.vmap(jax.random.key)(members)),
        jax.jit(jax.vmap(member.observe, in_axes=(0, {"value": 0}))),
    )
    return queue.run(store, report, warn)


@pytest.mark.parametrize("lanes", [1, 3, 10])
def test_members_end_with_their_own_status_at_their_own_frame(lanes):
    ok, done, bad, stalled = Status.OK, Status.CONVERGED, Status.NON_FINITE, Status.STALLED
    values = [3.0, 50.0, 0.0, 14.25, 0.5, 40.0, 7.0, -1.0, 12.0, 1.0]
    frames = [3, 40, 0, 1, 2, 40, 7, 1, 12, 1]
    expected = [done, ok, done, stalled, bad, done, done, bad, done, done]
    recorded, observed = countdown(lanes=lanes, values=values)
    for member, (value, end, status) in enumerate(zip(values, frames, expected, strict=True)):
        codes, left = recorded["status"][:, member], recorded["diagnosed.left"][:, member]
        assert (codes[:end] == ok).all() and codes[end] == status
        np.testing.assert_array_equal(left[:end], value - np.arange(end))
        np.testing.assert_array_equal(left[end], np.nan if status == bad else value - end)
        if status in (ok, done):
            assert observed["state"][member] == left[end]


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


VALUES = [30.5, 3.0, 17.0, 1.0, 9.0, 0.0, -1.0, 12.0, 40.5]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    with pytest.raises(Stopped):
        countdown(Store(folder), lanes=2, values=VALUES, report=StopAfter(5))
    return folder


@pytest.fixture
def interrupted(begun, tmp_path):
    """Return a folder with the first five segments of a sweep through two lanes, and the checkpoint after them."""
    return shutil.copytree(begun, tmp_path / "interrupted")


# File, array, inconsistent value with a valid checksum, and the reported message.
CRAFTED = {
    "negative member": ("segment 2", "member", [-1, 1], "a member outside 0 to 8"),
    "member that does not exist": ("segment 2", "member", [1000, 1], "a member outside 0 to 8"),
    "member in two lanes": ("segment 2", "member", [0, 0], "a member in two lanes"),
    "frame out of range": ("segment 2", "frame", [0, 10**6], "a frame outside 0 to 40"),
    "negative frame": ("segment 2", "frame", [-20, 0], "a frame outside 0 to 40"),
    "end of a member that is not there": ("segment 0", "left", [7], "a member ends that is in no lane"),
    "member of the checkpoint": ("checkpoint", "state.member", [-2, 1], "a member outside 0 to 8"),
    "frame of the checkpoint": ("checkpoint", "state.frame", [99, 1], "a frame outside 0 to 40"),
    "member that begins twice": ("checkpoint", "state.waiting", 0, "members that have begun more than once or not"),
    "member that never begins": ("checkpoint", "state.waiting", 9, "members that have begun more than once or not"),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_inconsistent_indices_are_reported_in_one_line_and_never_used(case, interrupted):
    file, name, value, problem = CRAFTED[case]
    number = file.removeprefix("segment ")
    path = interrupted / ("checkpoint.npz" if file == "checkpoint" else f"segments/{int(number):06d}.npz")
    arrays = read_arrays(path, UNBOUND.of(file))
    shape = (1,) if name == "left" else arrays[name].shape
    crafted = {name: np.broadcast_to(np.asarray(value, arrays[name].dtype), shape)}
    if name == "left":
        crafted["observed.state"] = np.zeros(1, np.float32)
    write_arrays(path, arrays | crafted, UNBOUND.of(file))
    told = []
    found = countdown(Store(interrupted), lanes=2, values=VALUES, warn=told.append)
    (line,) = told
    assert f"hold {problem}" in line and line.endswith("; starting from the beginning") and "\n" not in line
    for ours, theirs in zip(found, countdown(lanes=2, values=VALUES), strict=True):
        for key in theirs:
            np.testing.assert_array_equal(ours[key], theirs[key])
