"""Every shipped scenario as a program of ONNX and StableHLO: its step, its trajectory, its objective's gradient.

``SIMKIT_RUNTIMES=rows.jsonl pytest tests/thorough/export/test_every_scenario.py`` also appends a line for each to a
file, of which ``docs/make_runtimes.py`` makes the table of docs/export.md.
"""

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

import simkit.export
from tests.scenarios.small import NAMES, small, small_to_the_end

FORMS = ("step", "trajectory", "gradient")
# Roundings decide which packing a relaxation from a random start ends in, and fewer steps relax to none: the program
# runs, and its numbers differ.
DIFFERS = (("jamming", "gradient"),)
# Largest error of a step, a tenth of what passes anywhere: the joint forces of a double pendulum differ by 2e-10.
OF_A_STEP = 1e-9


def row(name, form, folder):
    """Return what the table says of a scenario and a form, and the report."""
    scenario = small_to_the_end(name) if form == "gradient" else small(name)
    tolerance = OF_A_STEP if form == "step" else None
    report = simkit.export.program(scenario, folder, to="all", what=form, tolerance=tolerance)
    runtimes = {
        one.runtime: {
            "nodes": one.nodes,
            "passed": one.passed,
            "refused": one.refused,
            "error": one.largest_error,
        }
        for one in report.runtimes
    }
    return {"scenario": name, "form": form, "compared_steps": report.compared_steps, "runtimes": runtimes}, report


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_scenario_agrees_in_every_runtime(name, form, tmp_path):
    entry, report = row(name, form, tmp_path / "out")
    if file := os.environ.get("SIMKIT_RUNTIMES"):
        with Path(file).open("a") as rows:
            rows.write(json.dumps(entry) + "\n")
    assert [one.runtime for one in report.runtimes] == ["onnxruntime", "jax.export"]
    if (name, form) in DIFFERS:
        assert report.misses and all("differs from JAX" in miss for miss in report.misses)
    else:
        assert report.passed, report.misses


@pytest.mark.parametrize("shipped", NAMES)
def test_step_at_its_own_size_agrees_with_jax(shipped, tmp_path):
    report = simkit.export.program(shipped, tmp_path / "out", to="onnx")
    assert report.passed, report.misses


@pytest.mark.parametrize("form", ["step", "segment"])
@pytest.mark.parametrize("name", ["channel_flow", "bouncing_ball", "soft_sphere_packing"])
def test_batch_of_any_size_agrees_in_every_runtime(name, form, tmp_path):
    report = simkit.export.program(small(name), tmp_path / "out", to="all", what=form, batch="symbolic")
    assert report.passed, report.misses
