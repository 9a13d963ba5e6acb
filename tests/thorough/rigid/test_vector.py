"""Vectors by components: the algebra is that of NumPy, and nothing is NaN where a length is zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import perpendicular, stacked, vector
from tests.rigid.test_vector import ROUNDING, directions

pytestmark = pytest.mark.usefixtures("x64")


def test_perpendiculars_have_finite_derivatives_in_every_direction():
    slopes = jax.vmap(jax.jacrev(lambda n: jnp.concatenate([stacked(p) for p in perpendicular(vector(n))])))(
        jnp.asarray(directions())
    )
    assert np.isfinite(slopes).all()
    # d a / d z = a^2 <= 1 is the largest factor in any entry, since |a| <= 1.
    assert np.abs(slopes).max() < 2 + ROUNDING
