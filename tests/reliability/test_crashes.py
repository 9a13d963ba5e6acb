"""Simulated crashes between any two file operations, after which nothing more reaches the disk.

Unlike a real kill at a random moment this visits every moment there is.
"""

import io
import os
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import simkit
from simkit.engine.driver import Plan, Program
from simkit.storage import files, store
from simkit.storage.run_directory import RunDirectory
from simkit.storage.store import Store
from tests.core.toys import oscillator
from tests.driving import drive
from tests.reliability.faults import everything
from tests.toys import SPRINGS, begun, toy


class Crash(BaseException):
    """The simulated death of the process."""


class Disk:
    """Counter of file operations; at the chosen one, and at all later ones, the process is dead.

    A write that is hit leaves half of its bytes.
    """

    def __init__(self, monkeypatch, last):
        self.count, self.last = 0, last
        write = io.BufferedWriter.write
        for owner, name in [
            (os, "fsync"),
            (Path, "replace"),
            (Path, "rename"),
            (Path, "unlink"),
            (Path, "mkdir"),
            (shutil, "rmtree"),
        ]:
            monkeypatch.setattr(owner, name, self._guarded(getattr(owner, name)))
        opened = files.open_regular
        disk = self

        class File:
            def __init__(self, file):
                self._file = file

            def write(self, data):
                try:
                    disk.operate()
                except Crash:
                    write(self._file, data[: len(data) // 2])
                    self._file.flush()
                    raise
                return write(self._file, data)

            def __getattr__(self, name):
                return getattr(self._file, name)

            def __enter__(self):
                return self

            def __exit__(self, *unused):
                self._file.close()

        monkeypatch.setattr(files, "open_regular", lambda path, mode: File(opened(path, mode)))

    def operate(self):
        self.count += 1
        if self.last is not None and self.count > self.last:
            raise Crash

    def _guarded(self, operation):
        def guarded(*arguments, **options):
            self.operate()
            return operation(*arguments, **options)

        return guarded


def crashing(monkeypatch, last, work):
    """Run a job that crashes after ``last`` operations; return whether it did, and the number of operations."""
    with monkeypatch.context() as patched:
        disk = Disk(patched, last)
        try:
            work()
        except Crash:
            return True, disk.count
        return False, disk.count


def forget_process(folder):
    """Rename the temporary files of the dead process: the resuming one has another process id."""
    for leftover in folder.rglob(f".*.{os.getpid()}.*"):
        leftover.rename(leftover.with_name(leftover.name.replace(str(os.getpid()), "0")))


def test_run_that_crashes_anywhere_resumes_bit_for_bit(tmp_path, monkeypatch, x64):
    simulation, plan = oscillator(3), Plan(8, 2)
    program, key = Program.of(simulation, plan), jax.random.key(1)

    def run(folder):
        for _ in drive(simulation, simulation.params, key, plan, store=Store(folder), program=program):
            pass

    run(tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    _, operations = crashing(monkeypatch, None, lambda: run(tmp_path / "counted"))
    # Per segment: two files written, made durable, renamed and their folders made durable; one old checkpoint renamed.
    assert operations > 40
    for last in range(operations):
        folder = tmp_path / f"crashed_{last}"
        crashed, _ = crashing(monkeypatch, last, lambda folder=folder: run(folder))
        assert crashed
        forget_process(folder)
        run(folder)
        assert everything(folder) == expected, f"after {last} operations"


def test_run_that_crashes_repeatedly_resumes_bit_for_bit(tmp_path, monkeypatch, x64):
    simulation, plan = oscillator(3), Plan(12, 2)
    program, key = Program.of(simulation, plan), jax.random.key(1)

    def run(folder):
        for _ in drive(simulation, simulation.params, key, plan, store=Store(folder), program=program):
            pass

    run(tmp_path / "whole")
    for seed in range(6):
        folder, moments = tmp_path / str(seed), np.random.default_rng(seed)
        crashes = 0
        while crashing(monkeypatch, int(moments.integers(1, 30)), lambda folder=folder: run(folder))[0]:
            crashes += 1
            forget_process(folder)
        assert crashes >= 1
        assert everything(folder) == everything(tmp_path / "whole")


WORK = {
    "run": lambda folder: simkit.run(toy(steps=4), output=folder),
    "sweep": lambda folder: simkit.sweep(toy(steps=4), {"frequency": [1.0, 2.0]}, chunk=1, output=folder),
    "relaxations": lambda folder: simkit.sweep(
        toy(SPRINGS, tolerance=0.05), {"rest": [1.0, 1.4]}, seeds=2, chunk=2, output=folder
    ),
    "optimize": lambda folder: simkit.optimize(toy(steps=4), "frequency", method="adam", iterations=2, output=folder),
}


def check_crashes(kind, tmp_path, monkeypatch, count=None):
    """Crash a job after each of some numbers of operations, or of all, and finish it."""
    # Every segment of a chunk is written.
    monkeypatch.setattr(store, "INTERVAL", 0.0)
    begin = WORK[kind]
    begin(tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    _, operations = crashing(monkeypatch, None, lambda: begin(tmp_path / "counted"))
    assert operations > 20
    for last in np.unique(np.linspace(0, operations - 1, count or operations).astype(int)):
        folder = tmp_path / f"{last}" / "work"
        crashed, _ = crashing(monkeypatch, last, lambda folder=folder: begin(folder))
        assert crashed
        forget_process(folder)
        if folder.exists():
            simkit.resume(folder)
        else:
            begin(folder)
        assert everything(folder) == expected, f"after {last} operations"


@pytest.mark.parametrize("kind", WORK)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_job_that_crashes_at_some_moments_is_absent_or_resumes(kind, tmp_path, monkeypatch):
    check_crashes(kind, tmp_path, monkeypatch, 5)


def test_replaced_run_is_the_old_or_the_new_one_at_every_moment(tmp_path, monkeypatch):
    old, new = toy(seed=1), toy(seed=2)

    def replace(folder):
        begun(folder, new, overwrite=True)

    begun(tmp_path / "counted", old)
    _, operations = crashing(monkeypatch, None, lambda: replace(tmp_path / "counted"))
    seeds = set()
    for last in range(operations + 1):
        folder = tmp_path / str(last) / "run"
        begun(folder, old)
        crashing(monkeypatch, last, lambda folder=folder: replace(folder))
        # Between the two renames, the old run has its temporary name.
        found = folder if folder.exists() else next(folder.parent.glob(".run.*.old"))
        seeds.add(RunDirectory.open(found).scenario().run.seed)
    assert seeds == {1, 2}
