"""Geometric sums equal the plain sum, with its derivative, at any ratio and any length."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.bounces.geometric import geometric_sum, terms_of
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

RATIOS = [0.0, 1e-8, 0.3, 0.99, 1 - 1e-4, 1 - 1e-9, 1.0]


@every("ratio", RATIOS[2:])
def test_the_number_of_terms_inverts_the_sum(ratio):
    for count in (0.0, 1.0, 2.0, 20.0):
        total = geometric_sum(jnp.array(ratio), jnp.array(count))
        # Rounding of the total by 1e-16 of itself, amplified by dn/dS = 1 / (-q^n ln q / (1 - q)) <= 1 / q^n.
        rounding = 1e-16 * float(total) / ratio**count
        np.testing.assert_allclose(terms_of(jnp.array(ratio), total), count, atol=1e-13 + 4 * rounding)
