"""Memory and disk checks: a job that does not fit is refused before computation, in one line with the sizes."""

import re

import jax
import numpy as np
import pytest

from simkit.cli.main import main
from simkit.engine import memory
from simkit.engine.plan import Plan
from simkit.errors import UserError
from simkit.jobs import size_checks


def shapes(state, frame):
    return jax.ShapeDtypeStruct((state,), np.float32), {"observed.speed": jax.ShapeDtypeStruct((frame,), np.float32)}


def refusal(state, frame, plan, output=None):
    with pytest.raises(UserError) as caught:
        size_checks.check_frames(*shapes(state, frame), plan, output)
    return str(caught.value)


def test_state_and_frames_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**20)
    size_checks.check_frames(*shapes(1000, 1000), Plan(100, 1), None)
    # 101 frames of 100,000 numbers of 4 bytes; 6 of the 10 MiB may be used.
    told = refusal(1000, 100_000, Plan(100, 1))
    assert "the 101 frames of this run need 38.5 MiB and 6 MiB may be used; store fewer with a larger every" in told
    assert "larger every" not in refusal(1000, 1_000_000, Plan(2, 2))
    assert "the state of this simulation needs 7.63 MiB" in refusal(1_000_000, 1, Plan(2, 2))


def test_frames_that_do_not_fit_on_the_disk_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(
        size_checks.shutil, "disk_usage", lambda path: size_checks.shutil._ntuple_diskusage(1, 1, 2**20)
    )
    size_checks.check_frames(*shapes(1000, 1000), Plan(100, 1), tmp_path / "new" / "run")
    told = refusal(1000, 10_000, Plan(100, 1), tmp_path / "new" / "run")
    assert re.search(r"run would take 3.86 MiB and 1 MiB are free on its disk; store fewer .* another disk", told)


HUGE = {
    "particles": ["jamming", "--set", "particles=100000000"],
    "every step": [
        "channel_flow",
        "--set",
        "config.axes.x.cells=1024",
        "--set",
        "config.axes.y.cells=512",
        "--set",
        "every=1",
        "--set",
        "time_step=1e-3",
    ],
    "cells": ["channel_flow", "--set", "config.axes.x.cells=100000000"],
    "boxes": ["falling_pile", "--set", "boxes=100000000"],
    "stacked boxes": ["box_stack", "--set", "boxes=100000000"],
    "unit cells": ["lennard_jones_fluid", "--set", "config.start.repeats=[8192, 8192, 8192]"],
    "atoms": ["lennard_jones_cluster", "--set", "particles=100000000"],
    "steps between": ["lennard_jones_fluid", "--set", "config.averages.skip=1000000000000"],
    "degrees": ["tollmien_schlichting", "--set", "points=[512, 512]"],
    "harmonics": ["tollmien_schlichting", "--set", "points=[100000000, 49]"],
    "fine cylinder": ["cylinder_in_channel", "--set", "config.axes.x.refined.cell=1.5e-8"],
}


FINE = {
    "channel": [
        "channel_flow",
        "--set",
        "config.axes.x.cells=8192",
        "--set",
        "config.axes.y.cells=8192",
        "--set",
        "time_step=1e-4",
    ],
    "channel at an unstable time step": [
        "channel_flow",
        "--set",
        "config.axes.x.cells=8192",
        "--set",
        "config.axes.y.cells=8192",
    ],
    "cavity": [
        "lid_driven_cavity",
        "--set",
        "config.axes.x.cells=8192",
        "--set",
        "config.axes.y.cells=8192",
        "--set",
        "time_step=1e-4",
    ],
    "heated cavity": [
        "heated_cavity",
        "--set",
        "config.axes.x.cells=4096",
        "--set",
        "config.axes.y.cells=4096",
        "--set",
        "time_step=1e-4",
    ],
    "cylinder": [
        "cylinder_in_channel",
        "--set",
        "config.axes.x.refined.cell=0.0005",
        "--set",
        "config.axes.y.refined.cell=0.0005",
    ],
    "waves": ["tollmien_schlichting", "--set", "cells=[8192, 8192]"],
}


@pytest.mark.parametrize("verb", ["run", "sweep"])
@pytest.mark.parametrize("words", FINE.values(), ids=FINE)
def test_too_large_grids_are_refused_before_solver_tables_are_computed(words, verb, tmp_path, capsys, monkeypatch):
    def told(*_, **__):
        raise AssertionError("a table of a solver was made")

    for table in ("modes.Transform", "tridiagonal.matrix_of_slopes", "tridiagonal.eliminate", "halves.eliminate"):
        monkeypatch.setattr(f"simkit.flow.solvers.{table}", told)
    monkeypatch.setattr("simkit.scenario.build._check_names", told)
    monkeypatch.setattr("simkit.core.expressions.quantities.Moment", told)
    # Ten frames of 4096 x 4096 numbers of 4 bytes; the scenario stores more frames.
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**26)
    swept = [] if verb == "run" else ["--seeds", "100"]
    assert main([verb, *words, *swept, "--output", str(tmp_path / "run")]) == 2
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1
    assert "are free; " in refused or "stability limit" in refused
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", HUGE.values(), ids=HUGE)
def test_huge_settings_are_refused_in_one_line_before_anything_is_computed(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("simkit.engine.loop.run_all", pytest.fail)
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 2**30)
    assert main(["run", *words, "--output", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "Traceback" not in told
    assert not list(tmp_path.iterdir())
