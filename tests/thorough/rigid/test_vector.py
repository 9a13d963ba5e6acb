"""Vectors by components: the algebra is that of NumPy, and nothing is NaN where a length is zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import Vector, dot, norm, normalize, perpendicular, stacked, vector
from tests.rigid.test_vector import ROUNDING, both_modes, directions

pytestmark = pytest.mark.usefixtures("x64")


def test_perpendiculars_have_finite_derivatives_in_every_direction():
    slopes = jax.vmap(jax.jacrev(lambda n: jnp.concatenate([stacked(p) for p in perpendicular(vector(n))])))(
        jnp.asarray(directions())
    )
    assert np.isfinite(slopes).all()
    # d a / d z = a^2 <= 1 is the largest factor in any entry, since |a| <= 1.
    assert np.abs(slopes).max() < 2 + ROUNDING


def test_a_zero_vector_does_not_spoil_derivatives_of_others():
    at = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.0]])

    def outcome(a):
        some = vector(a)
        return jnp.sum(norm(some)) + jnp.sum(dot(normalize(some, Vector(*jnp.eye(3))), some))

    # Both terms are the length |a|; where that is zero only n . a has a slope, the vector n = y that stands in.
    np.testing.assert_array_equal(both_modes(outcome, at), [[2, 0, 0], [0, 1, 0], [0, -2, 0]])
