"""Protection of run directories against links, pipes, other processes, foreign files and crafted manifests."""

import os
import subprocess
import sys

import numpy as np
import pytest

import simkit
from simkit.jobs.job import begin
from simkit.jobs.stored_derivatives import Gradient
from simkit.storage.run_directory import RunDirectory
from tests.toys import toy


def test_overwriting_removes_all_files_of_sweeps_and_optimizations(tmp_path):
    simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, chunk=1, output=tmp_path / "run")
    simkit.optimize(toy(), "frequency", iterations=1, method="adam", output=tmp_path / "run", overwrite=True)
    simkit.run(toy(), output=tmp_path / "run", overwrite=True)
    assert RunDirectory.open(tmp_path / "run").kind == "run"


OVERWRITE = """
import sys
from pathlib import Path

import simkit.jobs  # registers the kinds of jobs
from simkit.errors import UserError
from simkit.scenario import registry
from simkit.storage.run_directory import RunDirectory
from tests.toys import FACTORIES, NOTHING, toy

registry.FACTORIES.update(FACTORIES)
own, path = int(sys.argv[1]), sys.argv[2]
made = refused = 0
while made < 10:
    try:
        with RunDirectory.created(Path(path), "run", toy(seed=own), NOTHING, overwrite=True) as directory:
            made += 1
            for _ in range(3):
                assert directory.scenario().run.seed == own, "another process's run"
                assert RunDirectory.open(path).manifest == directory.manifest, "another process's manifest"
            (Path(path) / "summary.json").write_text(str(own))
            assert (Path(path) / "summary.json").read_text() == str(own)
    except UserError:
        refused += 1
        if refused > 1000:
            raise
"""


def test_two_processes_that_overwrite_one_folder_never_share_it(tmp_path):
    words = [sys.executable, "-c", OVERWRITE]
    started = [
        subprocess.Popen([*words, str(own), str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for own in (1, 2)
    ]
    told = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0], told[0][1] + told[1][1]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("kind", ["run", "sweep", "optimize", "grad"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_resuming_finished_work_writes_nothing(kind, tmp_path, monkeypatch):
    work = {
        "run": lambda: simkit.run(toy(), output=tmp_path / "run"),
        "sweep": lambda: simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, chunk=1, output=tmp_path / "run"),
        "optimize": lambda: simkit.optimize(toy(), "frequency", method="adam", iterations=1, output=tmp_path / "run"),
        "grad": lambda: begin(Gradient(toy(), ("frequency",), "energy"), tmp_path / "run"),
    }
    expected = work[kind]()
    expected = Gradient.dataset(expected) if kind == "grad" else expected
    opened = os.open

    def only_to_read(path, flags, *more, **options):
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), path
        return opened(path, flags, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", only_to_read)
        patched.setattr(os, "replace", pytest.fail)
        patched.setattr(os, "rename", pytest.fail)
        found = simkit.resume(tmp_path / "run")
    assert set(found.data_vars) == set(expected.data_vars)
    for name in found.data_vars:
        np.testing.assert_array_equal(found[name].values, expected[name].values)
