"""Geometric sums equal the plain sum, with its derivative, at any ratio and any length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bounces.geometric import ENDLESS, geometric_sum, terms_of
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

RATIOS = [0.0, 1e-8, 0.3, 0.99, 1 - 1e-4, 1 - 1e-9, 1.0]


@every("ratio", [0.0, 0.3, 0.99])
def test_an_infinite_sum_equals_its_limit(ratio):
    value, derivative = jax.value_and_grad(geometric_sum)(jnp.array(ratio), jnp.array(ENDLESS))
    # 1 / (1 - q) and its derivative; the subtraction loses a unit of 1.1e-16 against 1 - q = 0.01.
    np.testing.assert_allclose([value, derivative], [1 / (1 - ratio), 1 / (1 - ratio) ** 2], rtol=1e-13)


@every("ratio", RATIOS[2:])
def test_the_number_of_terms_inverts_the_sum(ratio):
    for count in (0.0, 1.0, 2.0, 20.0):
        total = geometric_sum(jnp.array(ratio), jnp.array(count))
        # Rounding of the total by 1e-16 of itself, amplified by dn/dS = 1 / (-q^n ln q / (1 - q)) <= 1 / q^n.
        rounding = 1e-16 * float(total) / ratio**count
        np.testing.assert_allclose(terms_of(jnp.array(ratio), total), count, atol=1e-13 + 4 * rounding)


def test_a_total_beyond_the_limit_is_never_reached():
    assert terms_of(jnp.array(0.5), jnp.array(2.0)) == np.inf
    assert terms_of(jnp.array(0.0), jnp.array(1.5)) == np.inf
    assert terms_of(jnp.array(1.0), jnp.array(1e6)) == 1e6
