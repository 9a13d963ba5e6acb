"""Progress of running, interrupted and finished jobs, read from their files."""

import shutil
import subprocess
import sys
import time

import pytest

import simkit
from simkit.errors import UserError
from simkit.export.data_files import data_file
from simkit.jobs.stored_jobs import progress_of
from simkit.storage.run_directory import RunDirectory
from tests.jobs.test_progress import interrupted
from tests.scenarios.small import FEW_DISKS
from tests.toys import toy


def test_converging_members_are_counted_one_by_one(tmp_path):
    from simkit.jobs.sweeps import Sweep
    from simkit.scenario.made_in_python import load

    job = Sweep(
        load("soft_sphere_packing", FEW_DISKS),
        {},
        seeds=12,
        chunk=3,
    )
    interrupted(tmp_path / "sweep", job, 12)
    found = progress_of(tmp_path / "sweep")
    count = int(found.words.split()[0])
    assert 0 < count < 12
    assert found.fraction == count / 12
    assert found.words == f"{count} of 12 members"


def test_progress_of_configurations_is_summed(tmp_path):
    simkit.sweep(
        toy(),
        {"config.size": [2, 3], "frequency": [1.0, 2.0]},
        output=tmp_path / "sweep",
    )
    found = progress_of(tmp_path / "sweep")
    assert (found.words, found.kind) == ("4 of 4 members", "sweep over configurations")
    shutil.rmtree(tmp_path / "sweep" / "config_0001")
    (tmp_path / "sweep" / "summary.json").unlink()
    found = progress_of(tmp_path / "sweep")
    assert (found.words, found.fraction, found.state) == ("2 of 4 members", 0.5, "interrupted")


def test_progress_of_an_optimization_counts_iterations(tmp_path):
    with pytest.warns(UserWarning, match="used its 3 iterations"):
        simkit.optimize(toy(steps=4), "frequency", method="adam", iterations=3, output=tmp_path / "found")
    assert progress_of(tmp_path / "found").words == "3 of 3 iterations"


def test_a_finished_sweep_without_one_of_its_chunks_is_damaged_and_its_result_not_replaced_by_an_export(tmp_path):
    swept = simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, chunk=1, output=tmp_path / "sweep")
    assert progress_of(tmp_path / "sweep").state == "finished"
    with pytest.raises(UserError, match="is the result of a sweep, which no export replaces"):
        data_file(swept, "netcdf", tmp_path / "sweep" / "sweep.nc", overwrite=True)
    (tmp_path / "sweep" / "chunk_0001.npz").unlink()
    assert progress_of(tmp_path / "sweep").state == "damaged"
    simkit.resume(tmp_path / "sweep")
    assert progress_of(tmp_path / "sweep").state == "finished"


def test_reading_progress_does_not_block_a_starting_process(tmp_path):
    from simkit.jobs.runs import Run

    folder = tmp_path / "run"
    interrupted(folder, Run(toy(steps=40, every=1)), 6)
    program = "import sys, time; from simkit.storage.run_directory import is_locked\nfrom pathlib import Path\n"
    program += "print(flush=True)\nwhile True: is_locked(Path(sys.argv[1]))"
    looking = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE)
    try:
        looking.stdout.readline()
        for _ in range(20):
            with RunDirectory.open(folder).locked():
                time.sleep(0.001)
    finally:
        looking.kill()
        looking.wait()


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_progress_of_a_run_counts_steps(tmp_path):
    from simkit.jobs.runs import Run

    folder = tmp_path / "run"
    interrupted(folder, Run(toy(steps=40, every=1)), 6)
    before = bytes_of(folder)
    found = progress_of(folder)
    assert (found.state, found.kind, found.scenario) == ("interrupted", "run", "toy_pendulums")
    assert 0 < found.fraction < 1
    assert found.words == f"{round(40 * found.fraction)} of 40 steps"
    assert (found.failed, found.seconds_left) == ([], None)
    assert bytes_of(folder) == before
    simkit.resume(folder)
    found = progress_of(folder)
    assert (found.state, found.fraction, found.words) == ("finished", 1.0, "40 of 40 steps")
