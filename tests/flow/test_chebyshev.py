from itertools import product

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from simkit.flow.spectral.orr_sommerfeld import (
    derivative_matrix,
    lobatto_points,
    quadrature_weights,
)
from tests.tables import every

COUNTS = [2, 5, 8, 17]


def polynomial(degree):
    return Polynomial(np.random.default_rng(degree).normal(size=degree + 1))


@every(product(COUNTS, [1, 2, 3, 4]))
def test_derivatives_of_polynomials_are_exact(count, order):
    p, y = polynomial(count - 1), lobatto_points(count)
    expected = p.deriv(order)(y)
    found = derivative_matrix(count, order) @ p(y)
    # A derivative multiplies the rounding unit by up to count^2/3 each time.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15 * count ** (2 * order) * np.max(np.abs(p(y))))


def test_derivatives_of_a_smooth_function_converge_exponentially():
    errors = []
    for count in (8, 16, 24):
        y = lobatto_points(count)
        errors.append(np.max(np.abs(derivative_matrix(count) @ np.sin(4 * y) - 4 * np.cos(4 * y))))
    # The coefficients of sin(4 y) fall like 2^n/n!: from n = 8 to 16 by 5e-7, then to round-off, 1e-15 * 24^2.
    assert errors[0] > 1e-2 and errors[1] < 1e-5 * errors[0] and errors[2] < 2e-12


@every(list(COUNTS))
def test_integrals_of_polynomials_are_exact(count):
    p = polynomial(count - 1)
    # Rounding of a few numbers below 10.
    assert quadrature_weights(count) @ p(lobatto_points(count)) == pytest.approx(
        p.integ()(1) - p.integ()(-1), abs=1e-14
    )
