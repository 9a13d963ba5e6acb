"""Sweeps on a CPU whose cores are devices of JAX: the same bytes with any number of them, and stops in order."""

import json
import os
import subprocess
import sys

import pytest

# Every further device starts as soon as possible, and the threads that computed chunks are counted.
COUNTED = """
import json, sys, threading
import jax, simkit
from simkit.jobs.chunks import Chunks
from simkit.jobs.executors import in_this_process
from simkit.scenario import registry
from tests.toys import FACTORIES, toy
registry.FACTORIES.update(FACTORIES)
in_this_process.Clock.pays = lambda self: True
compute, threads = Chunks.compute, set()
def counted(self, index, *rest, **more):
    threads.add(threading.get_ident())
    return compute(self, index, *rest, **more)
Chunks.compute = counted
folder, action = sys.argv[1:]
"""


SWEPT = """
if action == "sweep":
    simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0, 4.0]}, seeds=2, output=folder, chunk=1)
else:
    simkit.resume(folder)
print(json.dumps([len(jax.local_devices()), len(threads)]))
"""


INTERRUPTED = """
from simkit.jobs.job import begin
from simkit.jobs.sweeps import Sweep
def report(fraction, words):
    if fraction > 0.4:
        raise KeyboardInterrupt
try:
    begin(Sweep(toy(), {"frequency": (1.0, 2.0, 3.0, 4.0)}, seeds=2, chunk=1), folder, report=report)
except KeyboardInterrupt:
    running = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    print(json.dumps(running))
"""


FAILING = """
def counted(self, index, *rest, **more):
    if index == 5:
        raise simkit.UserError("chunk 5 has no memory")
    return compute(self, index, *rest, **more)
Chunks.compute = counted
try:
    simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0, 4.0]}, seeds=2, output=folder, chunk=1)
except simkit.UserError as error:
    print(json.dumps(str(error)))
"""


def ran(script, folder, devices, action="sweep"):
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-W", "ignore", "-c", COUNTED + script, str(folder), action]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".npz", ".nc", ".json")}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A sweep on one device."""
    folder = tmp_path_factory.mktemp("one") / "sweep"
    assert ran(SWEPT, folder, 1) == [1, 1]
    return folder


@pytest.mark.parametrize("devices", [2, 3])
def test_sweep_has_the_same_bytes_on_any_number_of_devices(one, devices, tmp_path):
    assert ran(SWEPT, tmp_path / "sweep", devices) == [devices, devices]
    assert files(tmp_path / "sweep") == files(one)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_interrupted_sweep_is_resumed_with_the_same_bytes_on_another_number_of_devices(one, first, second, tmp_path):
    folder = tmp_path / "sweep"
    assert ran(INTERRUPTED, folder, first) == []  # no thread computes after the interruption
    assert 0 < len(list(folder.glob("chunk_*.npz"))) < 8
    assert ran(SWEPT, folder, second, "resume") == [second, second]
    assert files(folder) == files(one)


def test_failure_in_a_thread_is_that_of_the_sweep(tmp_path):
    assert ran(FAILING, tmp_path / "sweep", 2) == "chunk 5 has no memory"


COMMAND = """
import sys
from simkit.cli.main import main
assert main(sys.argv[1:]) == 0
import jax
print(len(jax.local_devices()))
"""


@pytest.mark.parametrize(
    ("words", "given", "expected"),
    [
        ("sweep bouncing_ball --over launch_speed=3,4 --set steps=6 --set every=3 --no-render", {}, None),
        ("sweep bouncing_ball --over launch_speed=3,4 --dry-run time", {"JAX_NUM_CPU_DEVICES": "1"}, 1),
        ("run bouncing_ball --set steps=6 --set every=3 --no-render", {}, 1),
    ],
)
def test_a_sweep_makes_each_core_a_device_unless_the_user_sets_their_number(words, given, expected, tmp_path):
    cleared = {name: value for name, value in os.environ.items() if name not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
    environment = cleared | {"PYTHONPATH": os.getcwd()} | given
    command = [sys.executable, "-W", "ignore", "-c", COMMAND, *words.split(), "-o", str(tmp_path / "out")]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=os.getcwd()).stdout
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(out.splitlines()[-1]) == (expected or cores)
    if words.startswith("sweep") and "--dry-run" not in words:
        command = [*command[:5], "resume", str(tmp_path / "out")]
        again = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=os.getcwd())
        assert int(again.stdout.splitlines()[-1]) == cores
