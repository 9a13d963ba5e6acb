"""Memory and disk checks: a job that does not fit is refused before computation, in one line with the sizes."""

import pytest

from simkit.cli.main import main
from simkit.engine import memory
from tests.tables import every

HUGE = {
    "particles": "jamming particles=100000000",
    "every step": "channel_flow config.axes.x.cells=1024 config.axes.y.cells=512 every=1 time_step=1e-3",
    "cells": "channel_flow config.axes.x.cells=100000000",
    "boxes": "falling_pile boxes=100000000",
    "stacked boxes": "box_stack boxes=100000000",
    "unit cells": "lennard_jones_fluid config.start.repeats=[8192,8192,8192]",
    "atoms": "lennard_jones_cluster particles=100000000",
    "steps between": "lennard_jones_fluid config.averages.skip=1000000000000",
    "degrees": "tollmien_schlichting points=[512,512]",
    "harmonics": "tollmien_schlichting points=[100000000,49]",
    "fine cylinder": "cylinder_in_channel config.axes.x.refined.cell=1.5e-8",
}
FINE = {
    "channel": "channel_flow config.axes.x.cells=8192 config.axes.y.cells=8192 time_step=1e-4",
    "channel at an unstable time step": "channel_flow config.axes.x.cells=8192 config.axes.y.cells=8192",
    "cavity": "lid_driven_cavity config.axes.x.cells=8192 config.axes.y.cells=8192 time_step=1e-4",
    "heated cavity": "heated_cavity config.axes.x.cells=4096 config.axes.y.cells=4096 time_step=1e-4",
    "cylinder": "cylinder_in_channel config.axes.x.refined.cell=0.0005 config.axes.y.refined.cell=0.0005",
    "waves": "tollmien_schlichting cells=[8192,8192]",
}


def arguments(words):
    """Return the name of a scenario and its settings as arguments of the command line."""
    name, *settings = words.split()
    return [name, *(word for setting in settings for word in ("--set", setting))]


@every("verb", ["run", "sweep"])
@every("words", FINE.values(), ids=FINE)
def test_too_large_grids_are_refused_before_solver_tables_are_computed(words, verb, tmp_path, capsys, monkeypatch):
    def told(*_, **__):
        raise AssertionError("a table of a solver was made")

    for table in ("modes.Transform", "tridiagonal.matrix_of_slopes", "tridiagonal.eliminate", "pressure.eliminate"):
        monkeypatch.setattr(f"simkit.flow.solvers.{table}", told)
    monkeypatch.setattr("simkit.scenario.build._check_names", told)
    monkeypatch.setattr("simkit.core.expressions.measures.Moment", told)
    # Ten frames of 4096 x 4096 numbers of 4 bytes; the scenario stores more frames.
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**26)
    swept = [] if verb == "run" else ["--seeds", "100"]
    assert main([verb, *arguments(words), *swept, "--output", str(tmp_path / "run")]) == 2
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1
    assert "are free; " in refused or "stability limit" in refused
    assert not list(tmp_path.iterdir())


@every("words", HUGE.values(), ids=HUGE)
def test_huge_settings_are_refused_in_one_line_before_anything_is_computed(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("simkit.jobs.runs.run_all", pytest.fail)
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 2**30)
    assert main(["run", *arguments(words), "--output", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "Traceback" not in told
    assert not list(tmp_path.iterdir())
