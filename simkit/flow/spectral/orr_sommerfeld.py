"""Orr-Sommerfeld equation of small waves on a parallel flow between walls, in Chebyshev polynomials."""

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from simkit.core.parameter import POSITIVE
from simkit.core.settings import arguments, number, whole, word


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


# Velocity and its second derivative as functions of y.
BASE_FLOWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "poiseuille": (lambda y: 1 - y**2, -2.0),
    "couette": (lambda y: y, 0.0),
}
DEFAULT_POINTS = 65


@dataclasses.dataclass(frozen=True, eq=False)
class Wave:
    """A small disturbance ``psi = Re(phi(y) exp(i alpha (x - c t)))``, with ``u = dpsi/dy`` and ``v = -dpsi/dx``.

    Attributes:
        wavenumber: alpha, unit 1/h.
        eigenvalue: ``sigma = -i alpha c``, unit U/h: amplitudes change as ``exp(sigma t)``.
        coefficients: Chebyshev coefficients of phi, complex, scaled so that the largest ``|dphi/dy|`` is 1 and
            dphi/dy is real and positive where it is largest.
    """

    wavenumber: float
    eigenvalue: complex
    coefficients: np.ndarray

    @property
    def growth_rate(self) -> float:
        """Growth rate of the amplitude, unit U/h; that of the energy is twice as large."""
        return self.eigenvalue.real

    @property
    def phase_speed(self) -> float:
        """Speed of the crests along the channel, unit U."""
        return -self.eigenvalue.imag / self.wavenumber

    def shape(self, y: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Return phi, or one of its derivatives, at heights ``y`` (any number of them, -1 to 1), complex."""
        return synthesis_matrix(len(self.coefficients), y, derivative) @ self.coefficients

    def streamfunction(self, x: np.ndarray, y: np.ndarray, time: float = 0.0) -> np.ndarray:
        """Return psi at the places ``x`` along and ``y`` across the channel, indexed ``[x, y]``.

        On a staggered grid take it at the corners of the cells: differences between corners are face velocities with
        no divergence beyond round-off, and psi vanishes on the walls.
        """
        along = np.exp(1j * self.wavenumber * np.asarray(x, dtype=float) + self.eigenvalue * time)
        return np.real(along[:, None] * self.shape(y))


@arguments(
    reynolds=number("Reynolds number", bounds=POSITIVE),
    wavenumber=number("wave number along the channel", bounds=POSITIVE),
    flow=word("base flow", tuple(BASE_FLOWS)),
    points=whole("points across the channel", low=8),
)
def waves(
    reynolds: float, wavenumber: float, *, flow: str = "poiseuille", points: int = DEFAULT_POINTS
) -> tuple[np.ndarray, np.ndarray]:
    """Return every eigenvalue of the Orr-Sommerfeld equation and the streamfunctions that go with them.

        sigma (D^2 - a^2) phi = -i a (U (D^2 - a^2) - U'') phi + 1/Re (D^2 - a^2)^2 phi,
        phi = dphi/dy = 0 at y = -1 and y = 1

    by collocation at Chebyshev points. The fourth derivative is that of the polynomial ``phi = (1 - y^2) q`` with
    q = 0 on the walls, so phi has the two conditions on each wall without an equation for them.

    Args:
        reynolds: Re = U h/nu, with U the velocity on the centerline (Poiseuille) or of the walls (Couette).
        wavenumber: a = alpha, unit 1/h.
        flow: ``"poiseuille"``, U = 1 - y^2, or ``"couette"``, U = y.
        points: number of Chebyshev points.

    Returns:
        eigenvalues ``(points - 2,)`` in order of falling growth rate, and ``(points, points - 2)`` values of phi at
        the points, one column each.

    Raises:
        UserError: if an argument is out of range.

    Good values: 65 points give ten digits at Re = 10000; the finest structure has a thickness of (a Re)^(-1/3).
    Only eigenvalues that do not change with the number of points are those of the flow.

    References: Orszag, J. Fluid Mech. 50, 689 (1971), doi:10.1017/S0022112071002842; Huang and Sloan, J. Comput. Phys.
    111, 399 (1994), doi:10.1006/jcph.1994.1073.
    """
    velocity, curvature = BASE_FLOWS[flow]
    y = lobatto_points(points)[1:-1]
    d2, d3, d4 = (derivative_matrix(points, order)[1:-1, 1:-1] for order in (2, 3, 4))
    fourth = ((1 - y**2)[:, None] * d4 - 8 * y[:, None] * d3 - 12 * d2) / (1 - y**2)
    identity, square = np.eye(points - 2), wavenumber**2
    laplacian = d2 - square * identity
    bilaplacian = fourth - 2 * square * d2 + square**2 * identity
    advection = velocity(y)[:, None] * laplacian - curvature * identity
    operator = np.linalg.solve(laplacian, -1j * wavenumber * advection + bilaplacian / reynolds)
    eigenvalues, vectors = np.linalg.eig(operator)
    order = np.argsort(-eigenvalues.real)
    return eigenvalues[order], np.pad(vectors[:, order], ((1, 1), (0, 0)))


def leading_wave(reynolds: float, wavenumber: float, *, flow: str = "poiseuille", points: int = DEFAULT_POINTS) -> Wave:
    """Return the wave that grows fastest or dies slowest; near alpha = 1 that of Tollmien and Schlichting.

    Arguments, equation and errors are those of `waves`.

    Example:
        >>> wave = flow.leading_wave(10000.0, 1.0)
        >>> print(f"c = {wave.phase_speed:.6f} + {wave.growth_rate:.6f} i, Orszag (1971): 0.237526 + 0.003740 i")
        c = 0.237526 + 0.003740 i, Orszag (1971): 0.237526 + 0.003740 i
    """
    eigenvalues, vectors = waves(reynolds, wavenumber, flow=flow, points=points)
    phi = vectors[:, 0]
    slope = derivative_matrix(points) @ phi
    largest = slope[np.argmax(np.abs(slope))]
    return Wave(
        wavenumber=wavenumber,
        eigenvalue=complex(eigenvalues[0]),
        coefficients=analysis_matrix(points) @ (phi / largest),
    )
