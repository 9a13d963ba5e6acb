"""Elastic constants against finite strains of relaxed systems, also under pressure, and moduli."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.elasticity import (
    bulk_modulus,
    directional_shear_modulus,
    elastic_constants,
    shear_modulus,
    stress_correction,
)
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import soft_sphere


def floats(**values):
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def test_moduli_of_a_cubic_crystal_are_the_textbook_ones(x64):
    c11, c12, c44 = 151.4, 76.4, 56.4
    stiffness = jnp.diag(jnp.array([c11 - c12] * 3 + [c44] * 3)).at[:3, :3].add(c12)
    np.testing.assert_allclose(bulk_modulus(stiffness), [(c11 + 2 * c12) / 3] * 2, rtol=1e-12)
    shear = shear_modulus(stiffness)
    assert float(shear.voigt) == pytest.approx((c11 - c12 + 3 * c44) / 5, rel=1e-12)
    assert float(shear.reuss) == pytest.approx(5 / (4 / (c11 - c12) + 3 / c44), rel=1e-12)
    assert float(shear.hill) == pytest.approx((float(shear.voigt) + float(shear.reuss)) / 2, rel=1e-12)
    softest = directional_shear_modulus(stiffness, [1, -1, 0], [1, 1, 0])
    assert float(softest) == pytest.approx((c11 - c12) / 2, rel=1e-12)
    assert float(directional_shear_modulus(stiffness, [1, 0, 0], [0, 0, 1])) == pytest.approx(c44, rel=1e-12)


def test_correction_under_pressure_is_the_textbook_one(x64):
    correction = np.asarray(stress_correction(-2.0 * jnp.eye(3)))
    expected = np.diag([-4.0] * 3 + [-2.0] * 3)
    expected[:3, :3] += 2
    np.testing.assert_allclose(correction, expected, atol=1e-15)


def test_free_space_has_no_elastic_constants(x64):
    with pytest.raises(UserError, match="free space has no volume"):
        elastic_constants(pair_interaction(soft_sphere(), cutoff=1.0), jnp.zeros((2, 2)), None, floats(epsilon=1.0))
