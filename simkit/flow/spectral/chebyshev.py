"""Chebyshev polynomials on [-1, 1]: points, derivatives, integrals, transforms and interpolation, as NumPy matrices."""

import numpy as np
from numpy.polynomial import chebyshev


def lobatto_points(count: int) -> np.ndarray:
    """Return the extrema of a Chebyshev polynomial, both ends included, in increasing order.

        y_j = -cos(pi j/(count - 1))

    Args:
        count: number of points, at least 2; polynomials of degree ``count - 1`` are represented exactly.

    Returns:
        ``(count,)``, antisymmetric to the last bit.
    """
    j = np.arange(count)
    return np.sin(np.pi * (2 * j - (count - 1)) / (2 * (count - 1)))


def derivative_matrix(count: int, order: int = 1) -> np.ndarray:
    """Return the matrix that differentiates a polynomial given at the Lobatto points.

        D[i, j] = c_i/c_j (y_i - y_j)^-1,    D_m[i, j] = m/(y_i - y_j) (c_i/c_j D_(m-1)[i, i] - D_(m-1)[i, j])

    with ``c = (2, 1, ..., 1, 2)`` and alternating signs; each diagonal follows from the derivative of a constant,
    which is zero. The differences of points come from products of sines, so nothing is lost where points are close.

    Args:
        count: number of points.
        order: how often to differentiate, at least 1.

    Returns:
        ``(count, count)``: ``derivative = matrix @ values``.

    Reference: Weideman and Reddy, ACM Trans. Math. Softw. 26, 465 (2000), doi:10.1145/365723.365727.
    """
    angle = np.pi * np.arange(count) / (count - 1)
    half_sum, half_difference = (angle[:, None] + angle) / 2, (angle[:, None] - angle) / 2
    difference = 2 * np.sin(half_sum) * np.sin(half_difference)  # cos(b) - cos(a), which is y_i - y_j
    np.fill_diagonal(difference, 1.0)
    inverse = 1 / difference
    np.fill_diagonal(inverse, 0.0)
    c = np.where(np.arange(count) % (count - 1) == 0, 2.0, 1.0) * (-1.0) ** np.arange(count)
    ratio = c[:, None] / c
    matrix = np.eye(count)
    for m in range(1, order + 1):
        matrix = m * inverse * (ratio * np.diag(matrix)[:, None] - matrix)
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def quadrature_weights(count: int) -> np.ndarray:
    """Return the weights ``(count,)`` that integrate over [-1, 1] from values at the Lobatto points.

    Exact for polynomials of degree ``count - 1``.

    Reference: Clenshaw and Curtis, Numer. Math. 2, 197 (1960), doi:10.1007/BF01386223.
    """
    degree = np.arange(count)
    integrals = np.where(degree % 2 == 0, 2 / (1.0 - np.where(degree % 2 == 0, degree, 0) ** 2), 0.0)
    return integrals @ analysis_matrix(count)


def synthesis_matrix(count: int, y: np.ndarray | None = None, derivative: int = 0) -> np.ndarray:
    """Return the matrix ``(len(y), count)`` from Chebyshev coefficients to values.

    Args:
        count: number of coefficients, those of T_0 to T_(count - 1).
        y: where to evaluate; the Lobatto points by default.
        derivative: how often the polynomial is differentiated first.
    """
    y = lobatto_points(count) if y is None else np.asarray(y, dtype=float)
    return chebyshev.chebval(y, chebyshev.chebder(np.eye(count), derivative)).T


def analysis_matrix(count: int) -> np.ndarray:
    """Return the matrix ``(count, count)`` from values at the Lobatto points to Chebyshev coefficients."""
    ends = np.where(np.arange(count) % (count - 1) == 0, 0.5, 1.0)
    return 2 / (count - 1) * ends[:, None] * synthesis_matrix(count).T * ends


def interpolation_matrix(count: int, y: np.ndarray) -> np.ndarray:
    """Return the matrix ``(len(y), count)`` from values at the Lobatto points to values at heights ``y``."""
    return synthesis_matrix(count, y) @ analysis_matrix(count)
