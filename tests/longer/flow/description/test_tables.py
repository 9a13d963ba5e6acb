"""Tables of numbers: in formulas of a flow, from files and lists."""

import re

import jax
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.errors import UserError
from simkit.scenario.catalog import parse_scenario, read_scenario
from tests.flow.description.test_tables import SCENARIO, Y, entering
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

PARABOLA = "# y in h; from a probe\ny, speed\n0, 0\n0.25, 0.75\n0.5, 1\n0.75, 0.75\n1, 0\n"

FILE = '{ file = "inflow.csv", x = "y", y = "speed", interpolation = "cubic" }'


def test_an_inflow_profile_is_read_from_a_file_and_kept_with_the_scenario(tmp_path):
    (tmp_path / "inflow.csv").write_text(PARABOLA)
    (tmp_path / "probe.toml").write_text(SCENARIO.replace("U", FILE))
    scenario = read_scenario(tmp_path / "probe.toml")
    # A spline through a parabola is the parabola.
    np.testing.assert_allclose(entering(simkit.build(scenario)), 4 * Y * (1 - Y), rtol=0, atol=1e-14)
    (tmp_path / "inflow.csv").write_text(PARABOLA.replace("0.75\n", "0.7\n"))
    assert parse_scenario(scenario.text, tmp_path / "probe.toml") == scenario
    # What is set from outside is read then, and kept among the values.
    changed = simkit.load(scenario, {"config.axes.x.lower.u": {"x": [0, 1], "y": [1, 3], "at": "y"}})
    np.testing.assert_allclose(entering(simkit.build(changed)), 1 + 2 * Y, rtol=1e-14)


PUMP_ROWS = {"x": [0, 0.25], "y": [0, 1]}

PUMP = PUMP_ROWS | {"at": "time"}

BODY = {"rod": {"shape": "circle", "radius": 0.2, "position": [1, "0.5 + interp(time, pump)*0"]}}


def box(**more):
    axes = {axis: {"cells": 16, "length": 2.0, "lower": "wall", "upper": "wall"} for axis in "xy"}
    settings = {"axes": axes, "viscosity": 0.1, "tables": {"pump": PUMP_ROWS}}
    return flow.system(**{**settings, **more}, parameters={"time_step": 0.025, "low": 0.0})


@every(
    {
        "a force": {"force": {"x": PUMP}},
        "beside other data": {
            "force": {"x": "interp(time, pump)*interp(y + 9, far)"},
            "tables": {"far": {"x": [9, 11], "y": [0, 1]}, "pump": PUMP_ROWS},
        },
        "a viscosity": {"viscosity": "0.1 + 0.01*interp(time, pump)", "implicit": []},
        "a drag": {"drag": {"coefficient": "ramp"}, "derived": {"ramp": "interp(time, pump)"}},
        "a body": {"obstacles": BODY},
        "a scalar": {"scalars": {"dye": {"diffusivity": 0.1, "sides": {"y": {"lower": {"value": PUMP}}}}}},
    }
)
def test_a_run_that_a_table_of_the_time_does_not_cover_is_refused_before_it_begins(settings):
    simulation = box(**settings)
    simulation.check_values(simulation.params, jax.random.key(0), 10)
    with pytest.raises(UserError, match=r"ends at 0\.25, and the run at time 0\.275, where it has no value"):
        simulation.check_values(simulation.params, jax.random.key(0), 11)


def test_a_run_whose_end_is_not_known_beforehand_says_which_table_ended():
    held = box(force={"x": PUMP | {"outside": "hold"}, "y": "where(time < 0.2, interp(time, pump), 0)"})
    held.check_values(held.params, jax.random.key(0), 100)
    adaptive = box(force={"x": PUMP}, courant_number=0.5)
    adaptive.check_values(adaptive.params, jax.random.key(0), 100)
    with pytest.raises(simkit.RunFailedError, match="went on beyond the last row of a table of the time") as failure:
        simkit.run(adaptive, steps=40, every=4)
    assert re.search(r"time = 0\.\d+ \(time; data end in force\.x at 0\.25\)", str(failure.value))
    # A condition may end a run before its table does.
    text = SCENARIO.replace("U", '{ x = [0, 0.015], y = [1, 1], at = "time" }')
    with pytest.raises(UserError, match=r"x\.lower\.u ends at 0\.015, and the run at time 0\.02,"):
        simkit.build(parse_scenario(text, "probe.toml"))
    simkit.build(parse_scenario(text.replace("[run]", '[run]\nstop = "time > 0.012"'), "probe.toml"))
