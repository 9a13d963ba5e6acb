"""Notebook display of progress, runs, simulations and mistakes."""

import dataclasses
import sys
import types

import numpy as np
import pytest

import simkit
from simkit.core.status import Status
from simkit.jobs.job import begin
from simkit.jobs.runs import Run, RunFailedError
from simkit.scenario.made_in_python import load
from tests.core.toys import oscillator
from tests.toys import toy


def test_a_mistake_gives_one_line_in_a_notebook():
    with pytest.raises(simkit.UserError) as caught:
        simkit.load("chanel_flow")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("UserError: unknown scenario 'chanel_flow'") and "\n" not in line
    assert RunFailedError("it failed")._render_traceback_() == ["RunFailedError: it failed"]


def test_representations_are_short_and_tables_have_every_parameter():
    scenario, simulation = load("channel_flow"), oscillator()
    values = "reynolds = 100, forcing = 1, perturbation = 0.3, wall_velocity = 0, time_step = 0.015"
    assert repr(scenario) == f"<Scenario channel_flow: flow.domain, {values}>"
    assert repr(simulation) == "<Simulation: frequency = 1.3, time_step = 0.01>"
    table = scenario._repr_html_()
    assert all(f"<td>{name}</td>" in table for name in scenario.parameters)
    assert "<td>frequency</td><td>1.3</td>" in simulation._repr_html_()
    hostile = dataclasses.replace(scenario, title="<script>")
    assert "<script>" not in hostile._repr_html_()
    outcome = begin(Run(toy()), None)
    assert repr(outcome) == "<Outcome: toy_pendulums ran all its steps; 11 frames>"
    assert "unfinished" not in repr(dataclasses.replace(outcome, status=np.asarray(Status.CONVERGED)))


def test_progress_is_shown_in_notebooks_only(monkeypatch, capsys):
    simkit.run(toy())
    assert capsys.readouterr().err == ""
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    simkit.run(toy())
    assert "toy_pendulums  100 %" in capsys.readouterr().err
