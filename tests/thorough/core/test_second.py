"""Second derivatives: Hessians and products with them, the longer ones."""

import jax
import numpy as np
import pytest

from simkit.core.second import entries, hessian, hessian_vector_product
from tests.core.test_second import CASES, KEY, assert_hessian_equals_differences


@pytest.mark.parametrize("case", CASES)
def test_product_is_that_with_the_hessian(x64, case):
    make, wrt = CASES[case]
    objective = make()
    params, vector = objective.simulation.params, {wrt[0]: 0.7, wrt[1]: -1.3}
    value, _, derivative, matrix = jax.jit(hessian(objective.with_status, wrt))(params, KEY)
    found, slope, product = jax.jit(hessian_vector_product(objective, wrt))(params, KEY, vector)
    along = np.array([vector[name] for name in entries(params, wrt)])
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for name in wrt:
        np.testing.assert_allclose(slope[name], derivative[name], rtol=1e-7)
    expected = matrix @ along
    np.testing.assert_allclose(
        [product[name] for name in entries(params, wrt)], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max()
    )


@pytest.mark.parametrize("case", ["through steps", "of an equilibrium"])
def test_hessian_equals_differences_of_derivatives(x64, case):
    assert_hessian_equals_differences(case)


def test_hessian_equals_differences_of_derivatives_in_the_first_cases(x64):
    assert_hessian_equals_differences("of a series")
