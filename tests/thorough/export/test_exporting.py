"""Programs of a simulation for other runtimes: folder, verification, allowed errors, and refusals."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest

import simkit.export
from simkit.cli.main import main
from simkit.scenario.build import build
from simkit.storage.files import read_arrays, write_arrays
from tests.export.runs import LOGISTIC
from tests.export.test_exporting import copy, exported  # noqa: F401
from tests.toys import SPRINGS, toy


@pytest.mark.parametrize("program", ["run_onnx.py", "run_jax.py"])
def test_stand_alone_program_follows_the_run_without_simkit(program, copy, x64):
    blocked = copy / "blocked"
    blocked.mkdir()
    (blocked / "simkit.py").write_text("raise ImportError('simkit is not installed')")
    words = [sys.executable, str(copy / program)]
    environment = {"PYTHONPATH": str(blocked), "PATH": "/usr/bin"}
    ran = subprocess.run([*words, "--calls", "6", "-o", str(copy / "out.npz")], env=environment, check=False)
    assert ran.returncode == 0
    scenario = toy()
    simulation = build(scenario)
    whole = simkit.trajectory(simulation, 6, 1)
    _, frames, diagnostics = whole(simulation.params, jax.random.key(scenario.run.seed))
    found = np.load(copy / "out.npz")
    np.testing.assert_allclose(found["frame.position"], frames["position"][1:], rtol=1e-12)
    np.testing.assert_allclose(found["diagnostic.energy"], diagnostics["energy"][1:], rtol=1e-12)


def test_implicit_gradient_agrees(tmp_path):
    report = simkit.export.program(toy(SPRINGS), tmp_path / "out", to="all", what="gradient")
    assert report.passed and report.compared_steps is None


@pytest.mark.parametrize("form", ["trajectory", "gradient"])
def test_chaotic_program_is_compared_over_fewer_steps(form, tmp_path):
    report = simkit.export.program(toy(LOGISTIC), tmp_path / "out", to="onnx", what=form)
    assert report.passed and report.compared_steps in (8, 16, 32), report
    assert report.runtimes[0].differences


def test_an_output_that_rounding_decides_in_one_step_is_allowed_what_rounding_changes(tmp_path):
    # The joint forces of a step of 1/dt^2 times round-off; every other output has the usual tolerance.
    report = simkit.export.program("double_pendulum", tmp_path / "out", to="onnx", what="step", precision="float32")
    allowed = {each.output: each.allowed for each in report.runtimes[0].differences if each.allowed > 1e-3}
    assert report.passed and list(allowed) == ["next.memory.force"] and allowed["next.memory.force"] <= 1
    assert simkit.export.verify(tmp_path / "out").passed


def test_verification_and_scripts_compare_the_program_of_fewer_steps(tmp_path, capsys):
    out = tmp_path / "out"
    report = simkit.export.program(toy(LOGISTIC), out, to="all", what="segment")
    assert report.passed and all(one.differences for one in report.runtimes)
    shorter = json.loads((out / "shorter" / "io.json").read_text())
    assert shorter["steps_per_call"] == report.compared_steps and "compared_steps" not in shorter
    again = simkit.export.verify(out)
    assert again.passed and again.compared_steps == report.compared_steps
    arrays = read_arrays(out / "shorter" / "reference.npz")
    arrays["start.output.next.position"] *= 1 + 1e-6
    write_arrays(out / "shorter" / "reference.npz", arrays)
    assert main(["export", str(out), "--verify"]) == 1
    printed = capsys.readouterr()
    assert f"over {report.compared_steps} steps" in printed.out and "next.position differs from JAX" in printed.err
    ran = subprocess.run([sys.executable, out / "run_onnx.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "MISS" in ran.stdout
