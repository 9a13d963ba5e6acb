"""Elastic constants against finite strains of relaxed systems, also under pressure, and moduli."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.elasticity import (
    elastic_constants,
    stress_correction,
)
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import soft_sphere


def floats(**values):
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def test_correction_under_pressure_is_the_textbook_one(x64):
    correction = np.asarray(stress_correction(-2.0 * jnp.eye(3)))
    expected = np.diag([-4.0] * 3 + [-2.0] * 3)
    expected[:3, :3] += 2
    np.testing.assert_allclose(correction, expected, atol=1e-15)


def test_free_space_has_no_elastic_constants(x64):
    with pytest.raises(UserError, match="free space has no volume"):
        elastic_constants(pair_interaction(soft_sphere(), cutoff=1.0), jnp.zeros((2, 2)), None, floats(epsilon=1.0))
