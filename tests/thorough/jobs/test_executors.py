"""Executors: chunks computed by worker processes and on a Dask cluster have the same bytes, also if workers fail."""

import dataclasses
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest

import simkit
from simkit.errors import UserError
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.executors.in_this_process import InThisProcess
from simkit.jobs.executors.local_workers import LocalWorkers
from simkit.jobs.job import begin, proceed
from simkit.jobs.sweeps import Sweep
from simkit.scenario.made_in_python import load
from simkit.storage.run_directory import RunDirectory, UnfinishedError
from tests.clusters import Cluster
from tests.jobs.test_executors import own
from tests.scenarios.small import FEW_DISKS

psutil = pytest.importorskip("psutil")


# Members with a fixed number of steps, and converging members.
BALL = {"over": {"launch_speed": (3.0, 4.0, 5.0, 6.0)}, "chunk": 1}


PACKING = {"over": {"packing_fraction": (0.7, 0.8)}, "seeds": 4, "chunk": 2}


def ball(**more):
    return Sweep(load("bouncing_ball", {"time_step": 1e-3, "steps": 3600, "every": 36}), **{**BALL, **more})


def packing(**more):
    return Sweep(load("soft_sphere_packing", FEW_DISKS), **{**PACKING, **more})


KINDS = {"steps": ball, "convergence": packing}


def results(folder):
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".npz", ".nc", ".json")
    }


@dataclasses.dataclass(frozen=True)
class LastChunkFirst:
    """An executor defined outside of the package: chunks in this process, the last one first."""

    concurrency: int = 1
    shares_memory: bool = True
    in_this_process: bool = True

    def run(self, chunks, indices, report, warn):
        for count, index in enumerate(reversed(indices), 1):
            yield index, chunks.compute(index, lambda fraction, words: None, warn)
            report(count / len(indices), f"chunk {index}")


def forgotten(folder, *names):
    """Remove result and summary of a finished sweep, and some of its chunks."""
    for name in (*names, "sweep.nc", "summary.json"):
        (folder / name).unlink()


def workers_of(process):
    return [child for child in process.children() if "simkit.jobs.executors.worker" in child.cmdline()]


@pytest.fixture(scope="module", params=list(KINDS))
def finished(request, tmp_path_factory):
    """A sweep finished by two workers."""
    folder = tmp_path_factory.mktemp("sweep") / "run"
    begin(KINDS[request.param](executor=LocalWorkers(2, 300.0)), folder)
    return folder, KINDS[request.param]


def again(folder, executor):
    opened = RunDirectory.open(folder)
    job = (ConfigSweep if opened.kind == ConfigSweep.kind else Sweep).of(opened)
    warnings = []
    proceed(dataclasses.replace(job, executor=executor), opened, warnings.append)
    return warnings


def test_an_executor_from_outside_writes_the_bytes_of_this_process(tmp_path):
    sweep, order = Sweep(load(own(), {"steps": 20, "every": 10}), {"rate": (1.0, 2.0, 3.0, 4.0)}, chunk=1), []
    other = dataclasses.replace(sweep, executor=LastChunkFirst())
    begin(sweep, tmp_path / "one")
    begin(other, tmp_path / "other", report=lambda fraction, words: order.append(words))
    assert order == ["chunk 3", "chunk 2", "chunk 1", "chunk 0"]
    assert results(tmp_path / "other") == results(tmp_path / "one")


def test_missing_chunks_are_computed_with_the_same_bytes_by_any_executor(finished, tmp_path):
    folder, _ = finished
    expected = results(folder)
    assert len([name for name in expected if name.endswith(".npz")]) == 4
    for executor in (InThisProcess(), LocalWorkers(3, 300.0)):
        copy = tmp_path / type(executor).__name__
        shutil.copytree(folder, copy)
        forgotten(copy, "chunk_0001.npz", "chunk_0003.npz")
        assert again(copy, executor) == []
        assert results(copy) == expected


@pytest.mark.parametrize("name", [signal.SIGKILL, signal.SIGSTOP])
def test_chunk_of_a_worker_that_dies_or_hangs_is_computed_by_another(finished, name, tmp_path):
    folder, _ = finished
    copy, warnings, hit = tmp_path / "copy", [], []
    shutil.copytree(folder, copy)
    forgotten(copy, "chunk_0000.npz", "chunk_0001.npz", "chunk_0002.npz")

    def report(fraction, words):
        if not hit and (busy := workers_of(psutil.Process())):
            hit.append(busy[0].send_signal(name))

    # Longer than compilation, during which a worker sends no message.
    job, opened = Sweep.of(RunDirectory.open(copy)), RunDirectory.open(copy)
    executor = LocalWorkers(2, 30.0 if name == signal.SIGSTOP else 300.0)
    proceed(dataclasses.replace(job, executor=executor), opened, warnings.append, report)
    assert hit
    assert results(copy) == results(folder)
    assert not workers_of(psutil.Process())
    reason = "killed by SIGKILL" if name == signal.SIGKILL else "nothing for 30 s"
    assert not warnings or reason in warnings[0]


def test_workers_end_with_a_driver_that_is_killed(tmp_path):
    folder = tmp_path / "run"
    grid = "--set config.axes.x.cells=16 --set config.axes.y.cells=12"
    words = f"sweep channel_flow --over reynolds=100,200 --chunk 1 {grid} --set steps=40000 --workers 2"
    driver = psutil.Popen([sys.executable, "-m", "simkit.cli.main", *words.split(), "-o", str(folder)])
    deadline = time.monotonic() + 300
    while not list(folder.glob("chunk_*/segments/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = workers_of(driver)
    assert left, "the workers ended before the driver could be killed; give the test more work"
    driver.kill()
    driver.wait()
    _, alive = psutil.wait_procs(left, timeout=20)
    assert not alive
    subprocess.run([sys.executable, "-m", "simkit.cli.main", "resume", str(folder)], check=True, capture_output=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert simkit.open_run(folder).sizes["reynolds"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_dask_cluster_writes_the_bytes_of_one_process_even_if_a_worker_is_killed(kind, tmp_path):
    distributed = pytest.importorskip("distributed")
    job, hit = KINDS[kind], []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        executor = executor_of(scheduler=cluster.scheduler_address, deadline=300)

        def report(fraction, words):
            if not hit:
                hit.append(next(iter(cluster.workers.values())).pid)
                psutil.Process(hit[0]).kill()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin(job(executor=executor), tmp_path / "many", report=report)
        executor.client.close()
    assert hit
    expected = tmp_path / "one"
    shutil.copytree(tmp_path / "many", expected)
    forgotten(expected, *(path.name for path in expected.glob("chunk_*.npz")))
    again(expected, InThisProcess())
    assert results(tmp_path / "many") == results(expected)


@dataclasses.dataclass(frozen=True)
class Lost(LastChunkFirst):
    """An executor that ends before its first chunk."""

    def run(self, chunks, indices, report, warn):
        raise UnfinishedError("the workers are lost; use", chunks.run_directory.path)
        yield


@pytest.mark.parametrize("configs", [{}, {"particles.small.count": (4, 6)}])
def test_a_sweep_without_a_stored_chunk_is_kept_for_the_command_that_its_end_names(configs, tmp_path):
    scenario = load("soft_sphere_packing", FEW_DISKS)
    given = {"scenario": scenario, "over": {"packing_fraction": (0.7,)}, "chunk": 1}
    job = ConfigSweep(**given, configs=configs) if configs else Sweep(**given)
    assert not UnfinishedError.is_mistake  # exit code 3
    with pytest.raises(UnfinishedError, match=f"use: simkit resume {tmp_path / 'sweep'}$"):
        begin(dataclasses.replace(job, executor=Lost()), tmp_path / "sweep")
    again(tmp_path / "sweep", InThisProcess())
    assert (tmp_path / "sweep" / "sweep.nc").exists()


def test_a_lost_scheduler_and_one_without_workers_are_one_line(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("simkit.jobs.executors.dask_cluster.SECONDS_FOR_WORKERS", 1)
    with Cluster(tmp_path) as cluster:
        with pytest.raises(UserError, match="no workers for 1 s; start some with: dask worker tcp:"):
            executor_of(scheduler=str(cluster.place))
        cluster.add_worker()
        monkeypatch.undo()
        executor = executor_of(scheduler=str(cluster.place))
        with pytest.raises(UserError, match="the Dask scheduler no longer answers; start one") as caught:
            begin(ball(executor=executor), tmp_path / "sweep", report=lambda fraction, words: cluster.scheduler.kill())
        assert f"simkit resume {tmp_path / 'sweep'}" in str(caught.value)
        executor.client.close()
    again(tmp_path / "sweep", InThisProcess())
    begin(ball(), tmp_path / "expected")
    assert results(tmp_path / "sweep") == results(tmp_path / "expected")


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_in_parts_has_the_results_of_the_whole(kind):
    import numpy as np

    from simkit.core.precision import precision
    from simkit.jobs.chunks import Chunks
    from simkit.jobs.job import prepared_of

    job = KINDS[kind](chunk=3, seeds=2).checked()
    with precision(job.scenario.run.precision):
        chunks = Chunks(job, prepared_of(job, new=False), None)
        for index in range(chunks.count):
            one, two = (chunks.compute(index, lambda *_: None, print, parts=parts) for parts in (1, 2))
            members = len(chunks.members(index))
            assert set(one) == set(two)
            for name in one:
                axis = int(name.startswith("diagnosed."))
                a, b = (array.swapaxes(0, axis)[:members] for array in (one[name], two[name]))
                # Programs of two sizes round differently.
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
