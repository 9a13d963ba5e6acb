"""Objectives that are sums of squares: the residuals of expressions and diagnostics, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.expressions.measures import measure
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from tests.core.toys import oscillator
from tests.tables import every

FRAMES = {"u": np.random.default_rng(0).normal(size=(5, 4, 3))}
SERIES = {"time": np.arange(5.0), "drag": np.asarray([1.0, -2.0, 3.0, 0.5, 4.0]), "lift": np.linspace(-1, 1, 5)}
AXES = {"u": ("x", "y")}


def arrays():
    """Return frames and diagnostics in the precision of the test."""
    return jax.tree.map(jnp.asarray, (FRAMES, SERIES))


@every(
    ("text", "words"),
    [
        ("time_mean(drag)", "'drag' is not a sum of squares; write sums"),
        ("time_mean(drag**2) - final(lift)**2", "is not a sum of squares"),
        ("-1*time_mean(drag**2)", "is not a sum of squares"),
        ("time_mean(lift*drag**2)", "drag..2' is not a sum of squares"),
        ("time_mean(drag**3)", "is not a sum of squares"),
        ("largest(drag**2)", "is not a sum of squares"),
        ("time_rms(drag)", "is the root of a sum of squares; square it"),
        ("exp(final(drag)**2)", "is not a sum of squares"),
    ],
)
def test_what_is_no_sum_of_squares_is_refused_by_name(text, words):
    expressed = measure(text, "objective", AXES, {*FRAMES, *SERIES})
    with pytest.raises(UserError, match=words):
        expressed.residuals(*arrays())


def test_an_objective_without_squares_has_no_residuals():
    simulation, key = oscillator(), jax.random.key(0)
    for quantity, words in (("position", "set square = true"), (lambda f, d: d["position"][-1], "write an expression")):
        with pytest.raises(UserError, match=words):
            Objective(simulation, quantity, 40).residuals(simulation.params, key)


def test_definitions_are_inserted_and_hidden_by_quantities(x64):
    definitions = {"peak": "largest(drag)", "end": "lift**2", "both": "peak + 2*end", "drag": "0*final(lift)"}
    known = {*FRAMES, *SERIES}

    def value(text):
        return float(measure(text, "objective", AXES, known, definitions=definitions)(*arrays()))

    assert value("peak + 0.5*end") == pytest.approx(4 + 0.5)
    assert value("both*peak") == pytest.approx((4 + 2) * 4)
    assert value("time_mean(drag) + end") == pytest.approx(np.mean(SERIES["drag"]) + 1)
    assert measure("peak**2 + end", "objective", AXES, known, definitions=definitions).residuals(*arrays()).size == 2


def test_definitions_of_themselves_are_refused():
    definitions = {"a": "b + 1", "b": "a*2"}
    with pytest.raises(UserError, match=r"objectives\.b: .* 'a' is not known here"):
        measure("a", "objective", AXES, {*FRAMES, *SERIES}, definitions=definitions)


def test_the_time_sum_counts_stored_frames(x64):
    simulation = oscillator()
    _, frames, diagnostics = trajectory(simulation, 20, 5)(simulation.params, jax.random.key(0))
    expressed = measure("time_sum(position)", "objective", {}, {*frames, *diagnostics})
    stored = jnp.asarray([True, True, True, False, False])
    np.testing.assert_allclose(expressed(frames, diagnostics, stored), jnp.sum(diagnostics["position"][:3]), rtol=1e-13)
