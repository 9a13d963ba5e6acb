"""Tables of numbers: in formulas of a flow, from files and lists."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.expressions.functions import interpolated
from simkit.core.settings.tables import Table
from simkit.errors import UserError
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

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
