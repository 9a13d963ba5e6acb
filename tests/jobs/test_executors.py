"""Executors: chunks computed by worker processes and on a Dask cluster have the same bytes, also if workers fail."""

import pytest

import simkit
from simkit.errors import UserError
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.executors.executor import Tries
from simkit.jobs.executors.worker import refuse_other_versions
from simkit.storage.manifest import versions


def own():
    return simkit.Simulation(
        init=lambda params, key: params["rate"],
        step=lambda x, params: x * 0.9,
        observe=lambda x, params: {"x": x},
        diagnose=lambda x, params: {"x": x},
        params={"rate": 1.0},
    )


def test_sweeps_that_workers_cannot_compute_are_refused(tmp_path):
    with pytest.raises(UserError, match="give output=, or leave workers out"):
        simkit.sweep("bouncing_ball", {"launch_speed": [3.0, 4.0]}, workers=2)
    with pytest.raises(UserError, match="was made in Python"):
        simkit.sweep(own(), {"rate": [1.0, 2.0]}, steps=10, workers=2, output=tmp_path / "run")
    with pytest.raises(UserError, match="scheduler has no effect on executor = 'workers'; leave it out"):
        executor_of(workers=2, scheduler="tcp://localhost:1")
    with pytest.raises(UserError, match="deadline has no effect on executor = 'in_this_process'; leave it out"):
        executor_of(deadline=3)
    with pytest.raises(UserError, match="executor = 'worker' is unknown; did you mean 'workers'"):
        executor_of(executor="worker:workers=2")
    for count in (0, -1, 2.5, True, "two", 10**6):
        with pytest.raises(UserError, match=r"workers = .* is not an integer from 1 to 1024; write one"):
            executor_of(workers=count)
    for seconds in (0, -1, float("nan"), float("inf"), "long"):
        with pytest.raises(UserError, match=r"deadline( = |: ).*"):
            executor_of(workers=2, deadline=seconds)
    assert not (tmp_path / "run").exists()


def test_a_run_cannot_be_resumed_by_workers(tmp_path):
    simkit.run("bouncing_ball", output=tmp_path / "run", steps=10, every=10)
    with pytest.raises(
        UserError, match="holds a run, and workers= and scheduler= distribute the members of a sweep; leave"
    ):
        simkit.resume(tmp_path / "run", workers=2)


def test_a_missing_scheduler_gives_one_line(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        executor_of(scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UserError, match="neither an address such as tcp://host:8786 nor a scheduler file"):
        executor_of(scheduler="nowhere.json")
    file = tmp_path / "wrong.json"
    for content in ("a,b", "{}", "[]", '{"address": 5}', '{"address": "tcp://x"}'):
        file.write_text(content)
        with pytest.raises(UserError, match="nor a scheduler file; give one of them"):
            executor_of(scheduler=str(file))
    with pytest.raises(UserError, match="nor a scheduler file; give one of them"):
        executor_of(scheduler="http://x")


def test_workers_with_other_software_are_refused():
    refuse_other_versions(versions(), versions(), "a worker")
    with pytest.raises(UserError, match=r"a worker has jax 0\.1 and the process that drives the sweep"):
        refuse_other_versions(versions(), versions() | {"jax": "0.1"}, "a worker")


def test_a_chunk_is_halved_after_two_failures_and_given_up_after_three(tmp_path):
    warnings = []
    tries = Tries(tmp_path, warnings.append)
    assert tries.parts(5) == 1
    tries.record_failure(5, "killed")
    assert (tries.parts(5), tries.parts(4)) == (1, 1)
    tries.record_failure(5, "killed")
    assert tries.parts(5) == 2
    with pytest.raises(UserError, match="chunk 5 failed 3 times"):
        tries.record_failure(5, "killed")
    assert [words.partition("computing")[2] for words in warnings] == [
        " it once more",
        " it once more, in 2 parts, whose last digits may differ",
    ]
