"""Seeded faults in run directories: damage to any file of any kind of job, finished or not."""

import collections
import contextlib
import dataclasses
import os
import random
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import simkit
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.jobs.sweeps import Sweep
from simkit.scenario import registry
from simkit.storage.files import Seal, read_arrays, write_arrays
from tests.stopping import StopAfter, Stopped
from tests.toys import FACTORIES, SPRINGS, toy


def _half_run(folder, seed):
    begin(Run(toy(seed=seed)), folder, report=StopAfter(6))


def _half_sweep(folder, seed):
    begin(Sweep(toy(seed=seed), {"frequency": (1.0, 2.0)}, chunk=1), folder, report=StopAfter(16))


def _half_relaxations(folder, seed):
    scenario = toy(SPRINGS, tolerance=0.05, seed=seed)
    begin(Sweep(scenario, {"rest": (1.0, 1.4)}, seeds=2, chunk=2), folder, report=StopAfter(1))


# Two jobs of each kind that differ only in the seed, so that a file of one is intact but foreign in the other.
WORK = {
    "run": lambda folder, seed: simkit.run(toy(seed=seed), output=folder),
    "half a run": _half_run,
    "sweep": lambda folder, seed: simkit.sweep(toy(seed=seed), {"frequency": [1.0, 2.0]}, chunk=1, output=folder),
    "half a sweep": _half_sweep,
    "half of some relaxations": _half_relaxations,
    "optimization": lambda folder, seed: simkit.optimize(
        toy(seed=seed), "frequency", method="adam", iterations=3, output=folder
    ),
}


def flip(path, moments, others):
    data = bytearray(path.read_bytes())
    if data:
        data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
    path.write_bytes(data)


def cut(path, moments, others):
    path.write_bytes(path.read_bytes()[: moments.randrange(max(path.stat().st_size, 1))])


def lengthen(path, moments, others):
    path.write_bytes(path.read_bytes() + moments.randbytes(moments.randrange(1, 300)))


def scramble(path, moments, others):
    path.write_bytes(moments.randbytes(moments.randrange(2000)))


def remove(path, moments, others):
    path.unlink()


def swap_with_another_run(path, moments, others):
    shutil.copyfile(others.other / path.relative_to(others.folder), path)


def swap_with_another_file(path, moments, others):
    alike = sorted(p for p in others.folder.rglob(f"*{path.suffix}") if p.is_file() and p != path)
    shutil.copyfile(moments.choice(alike or [path.parent / path.name]), others.spare)
    shutil.copyfile(others.spare, path)


def link(path, moments, others):
    path.unlink()
    path.symlink_to(others.precious)


def pipe(path, moments, others):
    path.unlink()
    os.mkfifo(path)


def folder(path, moments, others):
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("mine")


def seal_of(path):
    """Return the seal in an archive, None if it has none."""
    found = re.search(rb"run ([0-9a-f]+), ([a-z0-9 ]+), crc32 [0-9a-f]{8}\Z", path.read_bytes())
    return found and Seal(found[1].decode(), found[2].decode())


def everything(directory):
    """Return the bytes of every file by its name within a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def rewrite(path, moments, others):
    """Change names, shapes or types of an archive's arrays with its own seal and a valid checksum."""
    if (seal := seal_of(path)) is None:
        return
    arrays = read_arrays(path, seal)
    name = moments.choice(sorted(arrays))
    array = arrays.pop(name)
    change = moments.choice(["name", "none", "shape", "dtype", "more"])
    if change == "name":
        arrays[f"{name}x"] = array
    elif change == "shape":
        arrays[name] = np.stack([array, array])
    elif change == "dtype":
        arrays[name] = array.astype(np.float16 if array.dtype != np.float16 else np.int8)
    elif change == "more":
        arrays |= {name: array, "more": np.zeros(3)}
    write_arrays(path, arrays, seal)


FAULTS = (
    *(flip, cut, lengthen, scramble, remove, swap_with_another_run, swap_with_another_file),
    *(link, pipe, folder, rewrite),
)


@dataclasses.dataclass(frozen=True)
class Others:
    """What a fault may use, and must leave alone.

    Attributes:
        folder: the run directory to be damaged.
        other: one of another seed.
        precious: a file of the user outside.
        spare: a file to copy over.
    """

    folder: Path
    other: Path
    precious: Path
    spare: Path


@contextlib.contextmanager
def in_time(seconds=120):
    """Fail instead of blocking forever."""

    def stop(number, frame):
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def attempt(operation):
    """Return the result, and the line of the error."""
    try:
        with in_time():
            return operation(), None
    except simkit.UserError as error:
        return None, str(error)


def endure(kind, number, home, wanted, recorded):
    """Damage one file of a copy of a job, open and resume it, and check the guarantees.

    Args:
        kind: of the work, a key of `WORK`.
        number: seed of the fault.
        home: folder with the two pieces of work, ``KIND/0`` and ``KIND/1``; a copy is made beside them.
        wanted: the data set that the whole work returns.
        recorded: a list of warnings that grows.

    Returns:
        The name of the fault, the file, and what happened: noticed, mended or harmless.
    """
    moments = random.Random(f"{kind} {number}")
    copy = home / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home / kind / "0", copy, symlinks=True)
    precious, spare = home / "precious.txt", home / "spare"
    precious.write_text("precious")
    path = moments.choice(sorted(p for p in copy.rglob("*") if p.is_file()))
    archives = path.suffix == ".npz"
    fault = moments.choice([f for f in FAULTS if archives or f is not rewrite])
    where = f"{kind} {number}: {fault.__name__} {path.relative_to(copy)}"
    fault(path, moments, Others(copy, home / kind / "1", precious, spare))
    del recorded[:]
    told, resumed = "", False
    for operation in (simkit.open_run, simkit.resume, simkit.open_run):
        found, refused = attempt(lambda operation=operation: operation(copy))
        if refused:
            assert "\n" not in refused and str(copy) in refused, f"{where}: {refused}"
            told += refused
        else:
            resumed = resumed or operation is simkit.resume
            half = kind.startswith("half") and not resumed
            assert half or found.equals(wanted), f"{where}: another result by {operation.__name__}"
    warned = " ".join(str(warning.message) for warning in recorded)
    assert precious.read_text() == "precious", where
    if fault is folder:
        assert (path / "mine.txt").read_text() == "mine", where
    # The copy is read only if the manifest is damaged.
    if fault in (link, pipe, folder) and path.name not in (".lock", "manifest_copy.json"):
        assert path.name in told or "cannot be read back" in told, f"{where}: {told}"
    noticed = path.name in told + warned or "manifest.json" in told
    return fault.__name__, path.name, "noticed" if noticed else "harmless"


@pytest.fixture(scope="module")
def works(tmp_path_factory):
    """Return a function that runs the two jobs of a kind once, and returns their folder and the results."""
    home, results = tmp_path_factory.mktemp("faults"), {}

    def make(kind):
        if kind not in results:
            for seed in (0, 1):
                with contextlib.suppress(Stopped):
                    WORK[kind](home / kind / str(seed), seed)
            # The result of the complete job, read back.
            whole = home / "whole" / kind
            shutil.copytree(home / kind / "0", whole)
            simkit.resume(whole)
            results[kind] = simkit.open_run(whole)
        return home, results[kind]

    with pytest.MonkeyPatch.context() as patch:
        for name, target in FACTORIES.items():
            patch.setitem(registry.FACTORIES, name, target)
        yield make


def endure_all(works, kind, numbers, recwarn):
    """Damage a kind of work once for each number; return how often each fault was noticed."""
    home, wanted = works(kind)
    return collections.Counter(endure(kind, number, home, wanted, recwarn.list)[::2] for number in numbers)
