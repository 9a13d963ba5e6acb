from itertools import product

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from simkit.flow.spectral.orr_sommerfeld import (
    analysis_matrix,
    derivative_matrix,
    interpolation_matrix,
    lobatto_points,
    quadrature_weights,
    synthesis_matrix,
)
from tests.flow.flows import over

COUNTS = [2, 5, 8, 17]


def polynomial(degree):
    return Polynomial(np.random.default_rng(degree).normal(size=degree + 1))


@over(list(COUNTS))
def test_points_increase_from_wall_to_wall_and_mirror_exactly(count):
    y = lobatto_points(count)
    assert y[0] == -1 and y[-1] == 1 and np.all(np.diff(y) > 0)
    assert np.all(y == -y[::-1])
    np.testing.assert_allclose(y, -np.cos(np.pi * np.arange(count) / (count - 1)), atol=2e-16)


@over(product(COUNTS, [1, 2, 3, 4]))
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


@over(list(COUNTS))
def test_integrals_of_polynomials_are_exact(count):
    p = polynomial(count - 1)
    # Rounding of a few numbers below 10.
    assert quadrature_weights(count) @ p(lobatto_points(count)) == pytest.approx(
        p.integ()(1) - p.integ()(-1), abs=1e-14
    )


def test_integral_of_the_parabola_is_the_flow_rate():
    assert quadrature_weights(9) @ (1 - lobatto_points(9) ** 2) == pytest.approx(4 / 3, rel=1e-15)


@over(list(COUNTS))
def test_analysis_inverts_synthesis(count):
    # Sums of count products of numbers up to 1.
    np.testing.assert_allclose(analysis_matrix(count) @ synthesis_matrix(count), np.eye(count), atol=1e-15 * count)


def test_synthesis_differentiates():
    y = np.linspace(-1, 1, 7)
    # T_3 = 4 y^3 - 3 y; rounding.
    np.testing.assert_allclose(synthesis_matrix(4, y)[:, 3], 4 * y**3 - 3 * y, atol=2e-15)
    np.testing.assert_allclose(synthesis_matrix(4, y, 1)[:, 3], 12 * y**2 - 3, atol=1e-14)
    np.testing.assert_allclose(synthesis_matrix(4, y, 2)[:, 3], 24 * y, atol=1e-14)


@over(list(COUNTS))
def test_polynomials_are_interpolated_exactly(count):
    p, y = polynomial(count - 1), np.linspace(-1, 1, 11)
    # Rounding times the Lebesgue constant, below 3.
    np.testing.assert_allclose(interpolation_matrix(count, y) @ p(lobatto_points(count)), p(y), atol=2e-14)
