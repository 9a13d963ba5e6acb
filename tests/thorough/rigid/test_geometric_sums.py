"""Geometric sums equal the plain sum, with its derivative, at any ratio and any length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bounces.geometric import geometric_sum
from tests.rigid.test_geometric_sums import RATIOS
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every("count", [0.0, 1.0, 2.0, 5.0])
def test_derivatives_of_every_order_exist_where_the_ratio_is_zero(count):
    def total(ratio):
        return geometric_sum(ratio, jnp.array(count))

    # S = 1 + q + q^2 + ... has as many of the derivatives 1, 1, 2, 6 at q = 0 as it has terms.
    found, derivatives = total, []
    for _ in range(4):
        derivatives.append(float(jax.jit(found)(jnp.array(0.0))))
        found = jax.grad(found)
    np.testing.assert_allclose(derivatives, [1.0 if count else 0.0, *np.where(count > np.arange(1, 4), [1, 2, 6], 0)])


@every("ratio", RATIOS)
@every("count", [0, 1, 2, 7, 99, 101, 3000])
def test_the_closed_form_equals_the_plain_sum_and_has_its_derivative(ratio, count):
    value, derivative = jax.value_and_grad(geometric_sum)(jnp.array(ratio), jnp.array(float(count)))
    k = np.arange(count)
    expected = float(np.sum(ratio**k))
    expected_derivative = float(np.sum(k[1:] * ratio ** (k[1:] - 1)))
    # At the change of formula, n (1 - q) = 0.01, cancellation costs the value 2 digits and its derivative 4; the
    # latter's absolute error is a rounding unit of S / (1 - q), at most 100 here where S' = 0.
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(derivative, expected_derivative, rtol=1e-11, atol=1e-13)
