"""Second derivatives: Hessians and products with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.objective import Objective
from simkit.core.second import entries, hessian, hessian_differences, hessian_vector_product
from simkit.errors import UserError
from tests.core.toys import descent, oscillator

KEY = jax.random.key(7)
CASES = {
    "through steps": (lambda: Objective(oscillator(), "energy", 60), ("frequency", "time_step")),
    "of a series": (lambda: Objective(oscillator(), "position", 60, 6, "mean"), ("frequency", "time_step")),
    "of an equilibrium": (lambda: Objective(descent(), "length", 20_000), ("rest", "stiffness")),
}


def assert_hessian_equals_differences(case):
    make, wrt = CASES[case]
    objective = make()
    params = objective.simulation.params
    near = objective.continuation(params, KEY)
    expected = hessian_differences(lambda params, _: near(params), params, KEY, wrt).value
    for mode in ("forward", "reverse", "shortest"):
        _, _, derivative, matrix = jax.jit(hessian(objective.with_status, wrt, mode))(params, KEY)
        assert set(derivative) == set(wrt)
        np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_rows_of_array_entries_are_named_by_their_index(x64):
    params = {"b": jnp.zeros((2, 2)), "a": jnp.asarray(1.0), "deep": {"c": jnp.zeros(2)}}
    assert entries(params, ["deep", "b", "a"]) == [
        "a",
        *(f"b[{i}, {j}]" for i in (0, 1) for j in (0, 1)),
        "deep.c[0]",
        "deep.c[1]",
    ]

    def objective(params, key):
        value = params["a"] ** 2 * params["b"][0, 1] + 3 * params["b"][1, 0] * params["deep"]["c"][1]
        return value, jnp.int32(0)

    matrix = jax.jit(hessian(objective, ["deep", "b", "a"]))(params, KEY)[3]
    names = entries(params, ["deep", "b", "a"])
    expected = np.zeros((7, 7))
    for a, b, value in (("a", "b[0, 1]", 2.0), ("b[1, 0]", "deep.c[1]", 3.0)):
        expected[names.index(a), names.index(b)] = expected[names.index(b), names.index(a)] = value
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ({"frequency": 1.0}, "the vector is of frequency; give an array for frequency, time_step"),
        ({"frequency": [1.0], "time_step": 1.0}, r"'frequency' has shape \(1,\); expected \(\)"),
    ],
)
def test_vectors_of_other_names_or_shapes_are_refused(vector, message):
    objective = Objective(oscillator(), "energy", 3)
    with pytest.raises(UserError, match=message):
        hessian_vector_product(objective, ["frequency", "time_step"])(objective.simulation.params, KEY, vector)
