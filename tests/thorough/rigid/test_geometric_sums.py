"""Geometric sums equal the plain sum, with its derivative, at any ratio and any length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bounces.geometric import geometric_sum
from tests.every import every

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
