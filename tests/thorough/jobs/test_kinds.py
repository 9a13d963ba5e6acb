"""Kinds of jobs: one class each, found by the name in a manifest and imported on demand."""

import dataclasses
import importlib.util
import subprocess
import sys
from typing import ClassVar

import jax
import pytest

import simkit
from simkit.cli.main import main
from simkit.jobs.job import begin
from simkit.jobs.runs import DrivenJob, Outcome
from simkit.scenario.build import build
from simkit.storage import manifest
from simkit.storage.kinds import KINDS
from tests.stopping import StopAfter, Stopped
from tests.toys import toy

OF_SWEEPS = ("simkit.engine.lanes", "simkit.jobs.chunks", "simkit.jobs.sweep_results", "simkit.jobs.sweeps")
OF_OPTIMIZATIONS = ("optax", "simkit.core.optimization", "simkit.jobs.derivatives", "simkit.jobs.optimizations")


@dataclasses.dataclass(frozen=True)
class LateRun(DrivenJob[Outcome]):
    """An added kind of job: a run whose first frame is some steps after the start."""

    kind = "late"
    noun = "a late run"
    files = r"late\.txt"
    request_checks: ClassVar = {"skipped": manifest.COUNT}

    skipped: int

    def simulation(self, *, new):
        simulation = build(self.scenario)

        def init(params, key):
            step = lambda _, state: simulation.step(state, params)  # noqa: E731
            return jax.lax.fori_loop(0, self.skipped, step, simulation.init(params, key))

        return dataclasses.replace(simulation, init=init)


@pytest.fixture
def late(monkeypatch):
    """Register the kind."""
    monkeypatch.setitem(KINDS, "late", f"{__name__}:LateRun")


def test_a_kind_from_outside_is_stored_resumed_opened_and_reported(late, tmp_path, capsys):
    job = LateRun(toy(), 6)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(4))
    assert simkit.open_run(tmp_path / "stopped").attrs["status"] == "unfinished"
    resumed = simkit.resume(tmp_path / "stopped")
    assert resumed.identical(begin(job, None).dataset())
    # Six steps late, by the same pendulums.
    run = simkit.run(toy(steps=6, every=6))
    assert float(resumed["time"][0]) == pytest.approx(float(run["time"][-1]), rel=1e-12)
    assert main(["resume", str(tmp_path / "stopped"), "--no-render"]) == 0
    assert "ran all its steps" in capsys.readouterr().out
    assert main(["render", str(tmp_path / "stopped")]) == 2
    assert "holds a late run, which has no animation; give a run's directory" in capsys.readouterr().err


PLAIN_RUN = f"""
import sys
from simkit.cli.main import main
words = ["bouncing_ball", "--set", "steps=2", "--set", "every=1", "--no-render", "--output", sys.argv[1]]
assert main(["run", *words]) == 0
assert main(["resume", sys.argv[1], "--no-render"]) == 0
print([name for name in {[*OF_SWEEPS, *OF_OPTIMIZATIONS, "xarray"]} if name in sys.modules])
"""


def test_a_plain_run_imports_neither_sweeps_nor_optimizations_nor_xarray(tmp_path):
    assert all(importlib.util.find_spec(name) for name in OF_SWEEPS + OF_OPTIMIZATIONS)
    command = [sys.executable, "-c", PLAIN_RUN, str(tmp_path / "run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
