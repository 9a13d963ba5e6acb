"""Second derivatives: Hessians and products with them, the longer ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.core.second import entries, gauss_newton_product, hessian, hessian_vector_product
from tests.core.test_second import CASES, KEY, assert_hessian_equals_differences
from tests.core.toys import oscillator


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


def test_gauss_newton_product_is_that_with_the_jacobian_and_its_transpose(x64):
    simulation = oscillator(5)
    wrt = ("frequency", "time_step")

    def residuals(params, key):
        state = segment(simulation, 20)(simulation.init(params, key), params)
        return jnp.stack([state.position, state.velocity]) - 0.3

    params, vector = simulation.params, {"frequency": 0.4, "time_step": 2.0}
    value, derivative, product = jax.jit(gauss_newton_product(residuals, wrt))(params, KEY, vector)
    jacobian = jax.jit(jax.jacfwd(lambda params: residuals(params, KEY).ravel()))(params)
    columns = np.stack([jacobian[name] for name in wrt], 1)
    left = np.asarray(jax.jit(residuals)(params, KEY)).ravel()
    np.testing.assert_allclose(value, 0.5 * left @ left, rtol=1e-13)
    np.testing.assert_allclose([derivative[name] for name in wrt], columns.T @ left, rtol=1e-10)
    expected = columns.T @ (columns @ np.array([vector[name] for name in wrt]))
    np.testing.assert_allclose([product[name] for name in wrt], expected, rtol=1e-10)
