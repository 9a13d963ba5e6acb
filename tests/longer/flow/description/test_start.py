"""Start fields from files, arrays and stored runs."""

import shutil

import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.errors import UserError
from simkit.scenario.catalog import parse_scenario, read_scenario
from tests.flow.description.test_start import BOX, CONFIG, DYE, after

pytestmark = pytest.mark.usefixtures("x64")


def test_a_flow_goes_on_from_a_frame_of_a_stored_run(tmp_path):
    first = flow.system(
        axes=BOX,
        viscosity=0.02,
        initial={"u": "sin(pi*y) + 0.3*cos(2*pi*x)*sin(pi*y)", "v": "cos(2*pi*x)"},
        scalars=DYE,
        observed=["u_face", "v_face", "dye"],
    )
    simkit.run(first, steps=4, every=2, output=tmp_path / "runs/first")
    (tmp_path / "later.toml").write_text(CONFIG.replace("START", '{ run = "runs/first", frame = -1 }'))
    scenario = read_scenario(tmp_path / "later.toml")
    whole, rest = after(first, 7), after(simkit.build(scenario), 3)
    # A Runge-Kutta step knows nothing but velocity and scalars: all that differs is the round-off of a projection.
    for expected, found in zip(
        (*whole.velocity, whole.scalar["dye"]), (*rest.velocity, rest.scalar["dye"]), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    # The arrays are kept with the scenario.
    shutil.rmtree(tmp_path / "runs")
    assert parse_scenario(scenario.text, tmp_path / "later.toml") == scenario
    with pytest.raises(UserError, match=r"start\.run: 'runs/first' does not exist|not a run directory"):
        read_scenario(tmp_path / "later.toml")
