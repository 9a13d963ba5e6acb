"""Quaternions rotate as matrices do, and turning by an angular velocity is exact and smooth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra import vector
from simkit.rigid.algebra.quaternion import identity, turn
from tests.rigid.test_quaternion import ROUNDING, numbers, turned_by

pytestmark = pytest.mark.usefixtures("x64")


def test_a_body_at_rest_does_not_spoil_derivatives_of_rotating_ones():
    rates = jnp.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]])

    def outcome(rates):
        start = identity(jnp.zeros(2))
        q = jax.lax.fori_loop(0, 10, lambda _, q: turn(q, 0.1 * vector.vector(rates)), start)
        return numbers(q)

    slope = jax.jacfwd(outcome)(rates)
    # Ten turns by a tenth: q = exp(rates / 2).
    np.testing.assert_allclose(slope[0, :, 0], np.vstack([np.zeros(3), np.eye(3) / 2]), atol=ROUNDING)
    np.testing.assert_allclose(slope[1, :, 1], jax.jacfwd(turned_by)(rates[1]), atol=ROUNDING)
    np.testing.assert_array_equal(slope[1, :, 0], 0)
