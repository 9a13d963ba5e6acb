"""Tables of numbers: in formulas of a flow, from files and lists."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.core.expressions.functions import interpolated
from simkit.core.settings.tables import Table
from simkit.errors import UserError
from simkit.scenario.catalog import parse_scenario, read_scenario
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

PARABOLA = "# y in h; from a probe\ny, speed\n0, 0\n0.25, 0.75\n0.5, 1\n0.75, 0.75\n1, 0\n"
SCENARIO = """
name = "probe"
simulation = "flow.domain"
[config]
viscosity = 0.1
[config.axes]
x = { cells = 4, length = 2, lower = { kind = "inflow", u = U }, upper = "outflow" }
y = { cells = 8, length = 1, lower = "wall", upper = "wall" }
[run]
steps = 2
every = 1
precision = "float64"
[render]
view = "chart"
quantity = "kinetic_energy"
"""
FILE = '{ file = "inflow.csv", x = "y", y = "speed", interpolation = "cubic" }'


def channel(u, **more):
    axes = {
        "x": {"cells": 4, "length": 2.0, "lower": {"kind": "inflow", "u": u}, "upper": "outflow"},
        "y": {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"},
    }
    return flow.system(axes=axes, viscosity=0.1, parameters={"peak": 1.0, "low": 0.0}, **more)


def entering(simulation, params=None):
    start = jax.jit(simulation.init)(simulation.params if params is None else params, jax.random.key(0))
    return start.velocity[0][0]


Y = (np.arange(8) + 0.5) / 8


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


def test_a_named_table_of_lists_serves_every_formula():
    tables = {"shape": {"x": [1, 0.5, 0], "y": [0, 1, 0]}, "ramp": {"x": [0, 1], "y": [3, 5], "outside": "hold"}}
    simulation = channel(
        "peak*interp(y, shape)*interp(time - 1, ramp)", tables=tables, derived={"q": "interp(2, ramp)"}
    )
    np.testing.assert_allclose(entering(simulation), 3 * (1 - np.abs(1 - 2 * Y)), rtol=1e-14)


def test_interpolation_and_its_derivative_are_exact_for_polynomials():
    x = np.array([0, 0.3, 0.7, 1.2, 2.0])
    place = jnp.asarray(np.random.default_rng(0).uniform(0, 2, 20))
    cubic = Table(tuple(x), tuple(x**3 - x), "cubic", "none")
    value, slope = jax.jvp(lambda p: interpolated(cubic, p), (place,), (jnp.ones_like(place),))
    # Round-off of a spline through five points.
    np.testing.assert_allclose(value, place**3 - place, rtol=0, atol=1e-13)
    np.testing.assert_allclose(slope, 3 * place**2 - 1, rtol=0, atol=1e-12)
    linear = Table(tuple(x), tuple(2 * x + 1), "linear", "hold")
    np.testing.assert_allclose(interpolated(linear, jnp.asarray([-1, 1.1, 3])), [1, 3.2, 5], rtol=1e-15)
    assert np.isnan(interpolated(cubic, jnp.asarray([-0.1, 2.1]))).all()


def test_derivative_through_a_table_is_that_of_central_differences():
    table = {"x": list(np.linspace(-1, 2, 13)), "y": list(np.sin(np.linspace(-1, 2, 13))), "interpolation": "cubic"}
    simulation = channel("peak*interp(y - low, shape)", tables={"shape": table})

    def amount(low):
        return jnp.sum(entering(simulation, {**simulation.params, "low": low}) ** 2)

    amount = jax.jit(jax.value_and_grad(amount))
    differences = (amount(0.1 + 1e-5)[0] - amount(0.1 - 1e-5)[0]) / 2e-5
    assert float(amount(0.1)[1]) == pytest.approx(float(differences), rel=1e-8)


LISTS = {"x": [0, 1], "y": [0, 1], "at": "y"}
MISTAKES = {
    "a column twice": ("y, speed, speed\n0, 1, 2\n1, 1, 2\n", "has 2 columns 'speed'; name each apart"),
    "digits apart": ("y, speed\n0, 1_0\n1, 1\n", "'1_0' is not a finite number"),
    "a missing column": ("y, u\n0, 1\n1, 1\n", r"inflow.csv: column = 'speed' is unknown; choose one of y, u"),
    "a word": ("y, speed\n0, 1\n\n1, fast\n", r"inflow.csv, line 4, column 'speed': 'fast' is not a finite number"),
    "no number": ("y;speed\n0;1\n1;nan\n", r"line 3, column 'speed': 'nan' is not a finite number"),
    "a short row": ("y speed\n0 1\n1\n", r"line 3, column 'speed': '' is not a finite number"),
    "a turn": ("y\tspeed\n0\t1\n2\t1\n1\t0\n", r"'y' = 1 in line 4 does not lie beyond 2 in line 3; sort the rows"),
    "decimal commas": (
        "y;speed\n0;1\n0,5;1\n",
        r"column 'y': '0,5' is not a finite number; write decimal points",
    ),
    "commas for all": ("y,speed\n0,1\n0,5,1\n", r"line 3 has 3 cells for 2 columns; .* write decimal points"),
    "one row": ("y, speed\n0, 1\n", r"inflow.csv has 1 row; give at least 2"),
    "nothing": ("# y\n", r"inflow.csv has no rows"),
}


@every(MISTAKES)
def test_a_wrong_file_is_refused_with_its_line_and_column(content, message):
    table = {"file": "inflow.csv", "text": content, "x": "y", "y": "speed"}
    with pytest.raises(UserError, match=rf"axes\.x\.lower\.u: .*({message})"):
        channel(table)


@every(
    [
        ({"file": "nowhere.csv", "x": "y", "y": "u"}, {}, r"lower\.u\.file: 'nowhere.csv' does not exist"),
        ({"x": [0, 1], "y": [0, 1]}, {}, r"lower\.u\.at is missing"),
        (LISTS | {"y": [1]}, {}, r"x has 2 entries and y 1"),
        (LISTS | {"file": "a.csv"}, {}, r"give x and y as two lists, or a file"),
        ("interp(y, 3)", {}, r"'3' is no table of numbers"),
        ("interp(t)", {}, r"has 1 argument; write interp\(y, inflow\), value of a named table"),
        ("interp(y, tt)", {}, r"'tt' is not known here; interp reads a table that has a name under 'tables'"),
        (
            {**LISTS, "at": "tt"},
            {},
            r"'interp\(>>>tt, table\)': 'tt' is not known here; known names: low, peak, time",
        ),
        ({**LISTS, "at": "u"}, {}, r"in other formulas; known names: low, peak, time, time_step, x, y$"),
        ("1 + t", {"t": {"x": [0, 1], "y": [0, 1]}}, r"'t' is a table; write interp\(x, t\)"),
        ("1", {"sin": {"x": [0, 1], "y": [0, 1]}}, r"tables.sin: the name 'sin' is taken"),
    ]
)
def test_a_table_that_cannot_be_read_is_refused(u, tables, message):
    with pytest.raises(UserError, match=message):
        channel(u, tables=tables)


def test_beyond_its_ends_a_table_has_no_value_unless_it_says_so():
    simulation = channel({"x": [0.2, 1], "y": [0, 1], "at": "y"})
    with pytest.raises(UserError, match=r"'interp\(y, table\)' is nan at index .* outside = 'hold'"):
        simulation.check(simulation.params, jax.random.key(0))


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
