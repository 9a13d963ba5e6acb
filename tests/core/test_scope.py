"""Formulas of a system: parameters, derived values and local names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import refuse_non_finite, scope
from simkit.core.settings import FormulaText
from simkit.errors import UserError
from tests.tables import every

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
        ("table", (), "the parameter 'table' is a list, and a formula takes single numbers"),
        ("wave", (), "force: 'wave' depends on 'time', which is not known here; known: parameters only"),
        ("final(speed)", (), "reduces frames, and a formula has the present one only"),
    ],
)
def test_unknown_local_names_are_refused(text, names, message):
    with pytest.raises(UserError) as refused:
        made(wave="sin(time)").formula(FormulaText(text, "force"), names)
    assert message in str(refused.value)


def test_derived_values_that_depend_on_other_names_are_not_offered():
    with pytest.raises(UserError) as refused:
        made(wave="sin(time)", half="speed/2").formula(FormulaText("q", "force"), ())
    assert str(refused.value).endswith("known names: half, reynolds, speed")


@every("name", ["speed", "sin", "pi", "time"])
def test_derived_values_need_names_of_their_own(name):
    with pytest.raises(UserError, match=f"the name '{name}' is taken"):
        made(**{name: "1"})


def test_a_parameter_with_the_name_of_a_coordinate_is_refused():
    with pytest.raises(UserError, match="parameter 'x' has the name of another value"):
        scope({"x": 1.0}, {}, ("x",))


def test_a_field_is_refused_where_one_number_is_needed():
    field = made().formula(FormulaText("x", "radius"), ("x",))
    with pytest.raises(UserError, match="radius: must be one number, and is one for each x"):
        field.number(PARAMS, x=Named(jnp.ones(3), ("x",)))


def test_a_formula_that_is_not_finite_at_the_start_is_refused():
    formula = made().formula(FormulaText("1/x", "initial"), ("x",))
    value = formula(PARAMS, x=Named(jnp.arange(-1.0, 2.0), ("x",)))
    with pytest.raises(UserError, match=r"initial: '1/x' is inf at index \[1\] of \[3\] at the start"):
        refuse_non_finite(formula, value)
