"""Expressions: functions, mistakes, scopes and quantities made of them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.expressions.evaluation import Named, SpatialAxis, constant, expression
from simkit.core.expressions.measures import ExpressedQuantity, measure, with_expressions
from simkit.core.expressions.scope import refuse_non_finite, scope
from simkit.core.expressions.syntax import FUNCTIONS
from simkit.core.settings import FormulaText
from simkit.core.simulation import Quantity
from simkit.errors import UserError
from tests.flow.plane_channel import plane_channel
from tests.tables import every

X, Y = 0.37, 1.9
ALIKE = ("log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf")
FORMULAS = {
    "2 + 3*x - y/x": 2 + 3 * X - Y / X,
    "-x**2": -(X**2),
    "2**-3 * x": X / 8,
    "x**y": X**Y,
    "2**y": 2**Y,
    "y**0.5": math.sqrt(Y),
    "4*((y/x)**12 - (y/x)**6)": 4 * ((Y / X) ** 12 - (Y / X) ** 6),
    "abs(x - y)": Y - X,
    "sign(x - y) * x": -X,
    "sqrt(x)": math.sqrt(X),
    "exp(-x)": math.exp(-X),
    **{f"{name}(x)": getattr(math, name)(X) for name in ALIKE},
    "atan2(x, y)": math.atan2(X, Y),
    "hypot(x, y)": math.hypot(X, Y),
    "max(x, y, 0.5) * x": Y * X,
    "min(x, y, 0.5) * y": X * Y,
    "clip(x, 0.1, y)": X,
    "where(0 < x < y and not x > 1, x*y, 0)": X * Y,
    "where(x == y or x != x, 1, y - x)": Y - X,
    "pi*x + e": math.pi * X + math.e,
}


def of(text):
    return lambda x, y: expression(text)({"x": x, "y": y}).array


def test_every_function_of_numbers_is_tested():
    between = {"at", "cubic_at", "interp", "parabola_min", "parabola_min_at"}
    over_frames = {name for name, known in FUNCTIONS.items() if known.over_frames}
    reductions = {"mean", "sum", "rms", "norm", *between, *over_frames}
    assert {name for name in FUNCTIONS if not any(f"{name}(" in text for text in FORMULAS)} == reductions


def test_an_infinite_slope_stays_infinite(x64):
    assert jax.grad(of("sqrt(x)"))(0.0, 1.0) == jnp.inf


@every(
    ("text", "value"),
    [
        ("count**2", 1e10),
        ("count*count*count", 1e15),
        ("count**-1", 1e-5),
        ("sqrt(count)", math.sqrt(100_000)),
        ("count/3", 100_000 / 3),
        ("hypot(count, count)", math.sqrt(2) * 100_000),
        ("sum(hit + hit)", 4.0),
        ("sum(1 - hit)", 1.0),
        ("sum(-hit)", -2.0),
    ],
)
def test_counts_and_flags_are_numbers_like_others(text, value, x64):
    names = {"count": jnp.int32(100_000), "hit": Named(jnp.asarray([True, False, True]), ("ball",))}
    assert expression(text)(names).array == pytest.approx(value, rel=1e-15)
    slope = jax.grad(lambda x: expression(f"x*({text})")(names | {"x": x}).array)(1.0)
    assert slope == pytest.approx(value, rel=1e-15)


@every("text", ["rms(x)", "norm(x)", "rms(-x)", "norm(-x)"])
def test_the_size_of_one_number_is_not_negative(text, x64):
    for x in (X, -X):
        assert expression(text)({"x": jnp.asarray(x)}).array == X
        assert jax.grad(lambda x: expression(text)({"x": x}).array)(x) == math.copysign(1, x)
    assert expression(text)({"x": -X}).array == X


def test_numbers_in_the_text_do_not_change_the_precision(x64):
    for dtype in (jnp.float32, jnp.float64):
        for text in FORMULAS:
            one = jax.ShapeDtypeStruct((), dtype)
            assert jax.eval_shape(of(text), one, one).dtype == dtype, (text, dtype)


U = np.arange(12.0).reshape(3, 4) ** 1.5
FIELD = {
    "u": Named(jnp.asarray(U), ("x", "y")),
    "x": Named(jnp.arange(3.0), ("x",)),
    "y": Named(jnp.arange(4.0), ("y",)),
}


LINE = np.array([0.0, 0.1, 0.3, 0.7, 1.0, 1.2])


def test_lowest_point_of_every_frame(x64):
    x = SpatialAxis("x", LINE)
    frames = jnp.asarray([(LINE - 0.4) ** 2, 1 + (LINE - 0.8) ** 2])
    values = {"u": Named(frames, ("frame", x))}
    np.testing.assert_allclose(expression('parabola_min_at(u, axis="x")')(values).array, [0.4, 0.8], rtol=1e-13)
    np.testing.assert_allclose(expression("parabola_min(u)")(values).array, [0, 1], rtol=0, atol=1e-15)


def test_all_coordinates_of_the_lowest_point_come_from_one_compiled_program(x64):
    x, y = SpatialAxis("x", LINE), SpatialAxis("y", LINE)
    field = jnp.asarray((LINE[:, None] - 0.4) ** 2 + (LINE - 0.8) ** 2)

    def places(field):
        return [expression(f'parabola_min_at(u, axis="{axis}")')({"u": Named(field, (x, y))}).array for axis in "xy"]

    # Both in one fusion end the compiler of JAX 0.12.0.
    np.testing.assert_allclose(jax.jit(places)(field), [0.4, 0.8], rtol=1e-13)


PLANE, SHORT = (SpatialAxis("x", LINE), SpatialAxis("y", LINE)), SpatialAxis("s", LINE[:2])
VALUES = FIELD | {
    "plane": Named(jnp.ones((6, 6)), PLANE),
    "bare": Named(jnp.ones(4), ("k",)),
    "short": Named(jnp.ones(2), (SHORT,)),
    "long": Named(jnp.ones(5), ("x",)),
}


@every(
    ("text", "phrase"),
    [
        ("at(u, x=3)", "'3' is beyond the values along x, from 0 to 2; write one of these"),
        ("at(u, y=-0.6)", "'-0.6' is beyond the values along y, from 0 to 3"),
        ("at(u, x=x)", "'x' has one number for each x; give one coordinate"),
        ("at(at(u, x=1), x=1)", "needs the axis 'x'; the array has y"),
        ("at(at(u, x=1, y=2), x=1)", "needs the axis 'x'; the array has no axis with coordinates"),
        ('parabola_min_at(plane, axis="z")', "needs the axis 'z'; the array has x, y"),
        ("parabola_min_at(plane)", 'needs an axis; write parabola_min_at(u, axis="x")'),
        ("parabola_min(3)", "needs axes with coordinates; there is no axis"),
        ("parabola_min(bare)", "needs axes with coordinates; 'k' has none"),
        ("parabola_min(short)", "fits parabolas through three points; 's' has fewer"),
        ("u + long", "combines 3 and 5 values along 'x'; give as many"),
        ("shorts", "'shorts' is not known here; did you mean 'short'"),
    ],
)
def test_what_arrays_do_not_have_is_named(text, phrase):
    with pytest.raises(UserError) as caught:
        expression(text)(VALUES)
    assert phrase in str(caught.value)


TIME = np.linspace(0.0, 4.0, 9)
LIFT = np.sin(3 * TIME)
NUMBERS = {"time": jnp.asarray(TIME), "lift": jnp.asarray(LIFT)}


@every("name", ["time_mean", "time_rms", "largest", "smallest"])
def test_no_frame_after_a_time_is_not_a_number(name):
    made = measure(f"{name}(lift, after=5)", "objective", {}, {"time", "lift"})
    assert jnp.isnan(made({}, NUMBERS))
    inverse = measure(f"1/{name}(lift, after=5)", "objective", {}, {"time", "lift"})
    assert jnp.isnan(inverse({}, NUMBERS))


def test_frames_after_a_stop_add_nothing_in_time():
    stopped = {"time": jnp.asarray([0.0, 1.0, 1.5, 1.5]), "lift": jnp.asarray([0.0, 2.0, 4.0, 4.0])}
    for text, value in (
        ("time_integral(lift)", 2.5),
        ("time_integral(lift, before=1.25)", 1 + 0.625),
        # The parabola through the three frames that differ.
        ("at_time(lift, 1.25)", 2 * 1.25 + 4 / 3 * 1.25 * 0.25),
        ("at_time(lift, 1.5)", 4.0),
    ):
        assert measure(text, "objective", {}, {"time", "lift"})({}, stopped) == pytest.approx(value, rel=1e-6)
    assert jnp.isnan(measure("at_time(lift, 1.6)", "objective", {}, {"time", "lift"})({}, stopped))


@every(
    ("text", "message"),
    [
        ("at_time(lift, lift)", "column 15 of 'at_time.lift, >>>lift.': 'lift' is not one number; reduce it to one"),
        ("at_time(2, 1)", "reduces frames, and its argument has none; give it a value that each frame has"),
        ("at_time(lift)", "at_time"),
    ],
)
def test_a_value_at_a_time_needs_a_series_and_one_time(text, message):
    with pytest.raises(UserError, match=message):
        measure(text, "objective", {}, {"time", "lift"})({}, NUMBERS)
    with pytest.raises(UserError, match="is an integral over time, and there is no 'time'; leave it out"):
        measure("time_integral(lift)", "objective", {}, {"lift"})({}, {"lift": NUMBERS["lift"]})


def test_an_objective_without_frames_is_refused_with_its_column():
    with pytest.raises(UserError, match="objective: column 1 of '>>>2\\*3': '2\\*3' is a constant; use an observed"):
        measure("2*3", "objective", {}, {"lift"})({}, NUMBERS)
    with pytest.raises(UserError, match=r"objective: column 1 of '>>>a \+ b'"):
        measure("a + b", "objective", {"a": ("x",), "b": ("x",)}, {"a", "b"})(
            {"a": jnp.ones((2, 3)), "b": jnp.ones((2, 4))}, {}
        )


def test_an_objective_that_counts_is_a_real_number():
    made = measure("hits", "objective", {}, {"hits"})
    assert made({}, {"hits": jnp.arange(3)}).dtype == jnp.float32


MISTAKES = {
    "": "an empty expression",
    "2 *": "not an expression",
    "x + sni(3)": "column 5 of 'x + >>>sni(3)': 'sni(3)' calls 'sni', which is no function; did you mean 'sin'?",
    "x + yy": "column 5 of 'x + >>>yy': 'yy' is not known here; did you mean 'y'?",
    "  x + zz": "column 7 of '  x + >>>zz'",
    "sin + 1": "'sin' is a function; write sin(...)",
    "x < y": "'x < y' is a condition where a number is needed; write where(condition, 1, 0)",
    "where(x, 1, 2)": "'x' is a number where a condition is needed",
    "not x": "is a number where a condition is needed",
    "x and y": "is a number where a condition is needed",
    "x^2": "has ^, which is no power; write **",
    "x if x > 1 else y": "write where(condition, one, other)",
    "max()": "has 0 arguments",
    "sin(x, y)": "has 2 arguments; write sin(x)",
    "sin(*x)": "has 1 argument; write sin(x)",
    "sin(x, axis='x')": "has no option 'axis'",
    "mean(x, axes='x')": "has no option 'axes'; did you mean 'axis'?",
    "mean(x, axis=3)": "is no name of an axis",
    "mean(x, axis='x', axis='y')": "has the option 'axis' twice",
    "max(x, y, axis='x')": "takes an axis of one array only; leave the axis out",
    "mean(x, axis='y')": "reduces along 'y'; the array has no axis",
    "at(x)": "needs a coordinate; write at(u, x=0.5)",
    "at(x, 1)": "has 2 arguments; write at(u, x=0.5)",
    "at(x, q=1)": "names 'q', which is no axis with coordinates here; known names: x, y",
    "at(x, x=1, x=2)": "has the option 'x' twice",
    "cubic_at(x)": "needs a coordinate; write cubic_at(u, x=0.5)",
    "at(3, x=1)": "needs the axis 'x'; the array has no axis with coordinates",
    "final(x)": "reduces frames, and its argument has none",
    "x in y": "is not a comparison of numbers",
    "x is y": "is not a comparison of numbers",
    "x // y": "is not arithmetic",
    "x % y": "is not arithmetic",
    "x[0]": "has 1 numbers, and the array has 0 axes",
    "x[-1]": "is no entry of an array; write whole numbers from 0",
    "x[y]": "is no entry of an array",
    "x[0.5]": "is no entry of an array",
    "x[True]": "is no entry of an array",
    "x[1:2]": "is no entry of an array",
    "x[()]": "is no entry of an array",
    "q[0]": "'q' is not known here",
    "(x + y)[0]": "takes an entry of a formula; give the formula a name as a quantity, and write name[0]",
    "x[0][0]": "takes an entry of a formula",
    "x.__class__": "'x.__class__' is not known here",
    "(1).real": "is not arithmetic",
    "'word'": "is not a number",
    "True": "is not a number",
    "1j": "is not a number",
    "1e999": "is too large for a floating-point number",
    "9" * 400: "is too large for a floating-point number",
    "1/0": "has no value (float division by zero)",
    "9**9**9": "has no value",
    "(-1)**0.5": "a root of a negative number",
    "__import__('os')": "calls '__import__', which is no function",
    "(lambda: x)()": "is not arithmetic",
    "[x for x in y]": "is not arithmetic",
    "x := 3": "not an expression",
    "f'{x}'": "is not arithmetic",
    "x; y": "not an expression",
    "x\ny": "2 lines of text, as of a file, where a formula stands; a table of numbers also names its columns, x and y",
    "\x1b[31mx": "column 1: a character that cannot be printed",
    "x" * 1001: "an expression of 1001 characters; write at most 1000",
    "(" * 300 + "x" + ")" * 300: "not an expression",
    "-" * 200 + "x": "exceeds",
    "+".join(["x"] * 300): "exceeds",
    "x + µ": "'µ' is not known here" if "µ".isidentifier() else "not an expression",
}


@pytest.mark.filterwarnings("error")
@every("text", MISTAKES)
def test_a_mistake_is_one_line_that_marks_its_column(text):
    with pytest.raises(UserError) as caught:
        expression(text, "file.toml: objectives.lift", known=("x", "y"))({"x": 0.5, "y": 2.0})
    message = str(caught.value)
    assert message.isprintable() and len(message) < 500
    assert message.startswith("file.toml: objectives.lift: ")
    assert MISTAKES[text] in message


def test_constants_are_of_double_precision():
    assert constant("2*100 + 1/3", "--set reynolds") == 200 + 1 / 3
    assert constant("sin(pi/6)", "--set reynolds") == math.sin(math.pi / 6)
    with pytest.raises(UserError, match="--set reynolds: 'log\\(0\\)' is -inf; write a finite number"):
        constant("log(0)", "--set reynolds")
    with pytest.raises(UserError, match="'x' is not known here"):
        constant("x", "--set reynolds")


def test_names_may_be_dotted():
    assert expression("2*cylinder.drag")({"cylinder.drag": 1.5}).array == 3.0


PARAMS = {"reynolds": jnp.asarray(100.0), "speed": jnp.asarray(2.0), "table": jnp.ones((2, 2))}


def made(**derived):
    return scope(
        PARAMS, {name: FormulaText(text, f"derived.{name}") for name, text in derived.items()}, ("time", "x", "y")
    )


def test_derived_values_are_found_through_one_another():
    found = made(viscosity="speed/reynolds", wave="sin(time)*viscosity")
    wave = found.formula(FormulaText("2*wave", "force"), ("time",))
    assert wave.taken == ("time", "speed", "reynolds") and wave.takes("time") and not wave.takes("x")
    assert float(wave.number(PARAMS, time=1.0)) == pytest.approx(0.04 * np.sin(1.0))
    slope = jax.grad(lambda params: wave.number(params, time=1.0))(PARAMS)
    assert float(slope["reynolds"]) == pytest.approx(-0.0004 * np.sin(1.0))


def test_fields_have_the_requested_axes():
    x, y = Named(jnp.arange(3.0), ("x",)), Named(jnp.arange(4.0), ("y",))
    found = made()
    field = found.formula(FormulaText("speed*y + x", "initial"), ("x", "y")).on(("x", "y"), PARAMS, x=x, y=y)
    assert np.array_equal(field, 2 * np.arange(4.0) + np.arange(3.0)[:, None])
    assert found.formula(FormulaText("y", "initial"), ("x", "y")).on(("x", "y"), PARAMS, x=x, y=y).shape == (1, 4)
    assert found.formula(FormulaText("3", "initial")).on(("x", "y"), PARAMS).shape == (1, 1)


@every(
    ("text", "names", "message"),
    [
        ("x + 1", ("time",), "force: column 1 of '>>>x + 1': 'x' is not known here"),
        ("renolds", (), "did you mean 'reynolds'?"),
        ("table", (), "'table' is a list, and a formula takes single numbers"),
        ("wave", (), "'wave' depends on 'time', which is not known here; known: parameters only"),
        ("final(speed)", (), "reduces frames, and here is the present one only"),
        ("q", (), "known names: half, reynolds, speed"),
    ],
)
def test_unknown_local_names_are_refused(text, names, message):
    with pytest.raises(UserError) as refused:
        made(wave="sin(time)", half="speed/2").formula(FormulaText(text, "force"), names)
    assert message in str(refused.value)


@every("name", ["speed", "sin", "pi", "time"])
def test_derived_values_need_names_of_their_own(name):
    with pytest.raises(UserError, match=f"the name '{name}' is taken"):
        made(**{name: "1"})


def test_a_parameter_with_the_name_of_a_coordinate_is_refused():
    with pytest.raises(UserError, match=r"params\.x: the name 'x' is taken"):
        scope({"x": 1.0}, {}, ("x",))


def test_a_field_is_refused_where_one_number_is_needed():
    field = made().formula(FormulaText("x", "radius"), ("x",))
    with pytest.raises(UserError, match="radius: has one number for each x; it must be one number"):
        field.number(PARAMS, x=Named(jnp.ones(3), ("x",)))


def test_a_formula_that_is_not_finite_at_the_start_is_refused():
    formula = made().formula(FormulaText("1/x", "initial"), ("x",))
    value = formula(PARAMS, x=Named(jnp.arange(-1.0, 2.0), ("x",)))
    with pytest.raises(UserError, match=r"initial: '1/x' is inf at index \[1\] of \[3\] at the start"):
        refuse_non_finite(formula, value)


UNIT = Quantity("1", "a measure")


def measured(simulation, **texts):
    said = {name: ExpressedQuantity(text, UNIT, f"file.toml: quantities.{name}") for name, text in texts.items()}
    return with_expressions(simulation, said)


@pytest.fixture
def channel():
    return plane_channel((8, 6))


def nameless():
    """Three numbers that grow, in arrays whose axes have no names."""

    def step(state, params):
        return {"a": state["a"] + params["step"], "time": state["time"] + params["step"]}

    return simkit.Simulation(
        init=lambda params, key: {"a": params["step"] + np.arange(3.0), "time": 0 * params["step"]},
        step=step,
        observe=lambda state, params: {"a": state["a"], "b": 2 * state["a"]},
        diagnose=lambda state, params: {"time": state["time"]},
        params={"step": 0.1},
    )


def test_unnamed_axes_are_not_aligned_between_arrays(x64):
    told = measured(nameless(), off="a - mean(a)", again="off*a*2")
    run = simkit.run(told, steps=1)
    assert run["off"].dims == run["again"].dims == run["a"].dims
    np.testing.assert_allclose(run["again"][-1], 2 * np.array([-1, 0, 1]) * run["a"][-1])
    value, _ = simkit.value_and_grad(told, "step", objective="sum(off*a)", steps=1)
    assert value == pytest.approx(2.0)
    remedy = "combines arrays, and 'a_0' is an axis without a name; name it in 'dimensions'"
    with pytest.raises(UserError, match=remedy):
        measured(nameless(), product="sum(a*b)")
    with pytest.raises(UserError, match=remedy):
        simkit.value_and_grad(nameless(), "step", objective="sum(a*b)", steps=1)


def test_after_includes_a_frame_whose_time_is_short_by_round_off(x64):
    # In float64, ten times 0.1 add up to less than 1.
    value, _ = simkit.value_and_grad(nameless(), "step", objective="smallest(time, after=1)", steps=20, every=1)
    assert value == pytest.approx(1.0)
