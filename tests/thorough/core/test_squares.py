"""Residuals of objectives that are squares of diagnostics: the longer tests."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.expressions.measures import measure
from simkit.core.objective import Objective
from tests.core.test_squares import AXES, FRAMES, SERIES, arrays
from tests.core.toys import oscillator
from tests.tables import every


@pytest.mark.parametrize("reduce", ["final", "mean", "root_mean_square", "maximum", "minimum", "sum"])
def test_the_square_of_a_diagnostic_has_residuals(reduce, x64):
    simulation, key = oscillator(), jax.random.key(0)
    objective = Objective(simulation, "position", 40, 4, reduce=reduce, square=True)
    residuals = objective.residuals(simulation.params, key)
    assert residuals.shape == ((11,) if reduce == "root_mean_square" else (1,))
    np.testing.assert_allclose(jnp.sum(residuals**2), objective(simulation.params, key), rtol=1e-13)


def test_residuals_have_the_derivative_of_the_expression(x64):
    expressed = measure("time_mean((drag - 1)**2, after=2)", "objective", AXES, {*FRAMES, *SERIES})

    def with_drag(of, drag):
        return of(arrays()[0], arrays()[1] | {"drag": drag})

    drag = arrays()[1]["drag"]
    exact = jax.grad(lambda drag: with_drag(expressed, drag))(drag)
    jacobian = jax.jacfwd(lambda drag: with_drag(expressed.residuals, drag))(drag)
    np.testing.assert_allclose(2 * jacobian.T @ with_drag(expressed.residuals, drag), exact, atol=1e-14)


@every("stored", [None, [True, True, True, False, False]])
@every(
    ("text", "count"),
    [
        ("drag**2", 1),
        ("time_mean((drag - 1)**2)", 5),
        ("time_mean((drag - 1)**2.0)", 5),
        ("time_mean((drag - 1)**2, after=2)", 5),
        ("0.5*time_sum(drag**2) + final(lift)**2/4", 6),
        ("mean((u - 1)**2)", 12),
        ('time_mean(mean(u[1]**2, axis="y"))', 15),
        ('time_mean(sum(mean(u, axis="x")**2))', 15),
        ("rms(u)**2", 12),
        ("norm(final(u))**2 + time_rms(drag)**2", 17),
        ("time_mean((drag*lift)**4)*2**3", 5),
        ("final((drag - 2)**2) + 10*max(0, time_mean(drag) - 1)**2", 2),
        ("final(rms(u))**2 + final(norm(u)**2)", 24),
    ],
)
def test_sum_of_squared_residuals_is_the_expression(text, count, stored, x64):
    expressed = measure(text, "objective", AXES, {*FRAMES, *SERIES})
    arguments = (*arrays(), None if stored is None else jnp.asarray(stored))
    residuals = expressed.residuals(*arguments)
    assert residuals.shape == (count,)
    np.testing.assert_allclose(jnp.sum(residuals**2), expressed(*arguments), rtol=1e-13)
