"""Stokes modes: decay modes of creeping flow between two walls, divergence-free, zero on the walls, orthonormal."""

import dataclasses
import functools

import numpy as np
from numpy.polynomial import chebyshev


@dataclasses.dataclass(frozen=True, eq=False)
class StokesModes:
    """Modes ``psi = cos(k x) phi(y)`` and ``sin(k x) phi(y)`` of a period in x, with ``u = dpsi/dy``, ``v = -dpsi/dx``.

    For each wavenumber the phi are polynomials with ``phi = dphi/dy = 0`` at y = -1 and y = 1; for k = 0, the flow
    averaged along the channel, only the slope vanishes there. They are scaled to the kinetic energy::

        integral of (phi_m' phi_n' + k^2 phi_m phi_n) dy = 1 if m = n, else 0

    Attributes:
        wavenumbers: ``(nk,)``, 0, 2 pi/length, ...
        decay: ``(nk, n)``, increasing: under viscosity nu alone amplitudes change as ``exp(-nu decay t)``.
        coefficients: ``(nk, n, ny)``, Chebyshev coefficients of phi.
    """

    wavenumbers: np.ndarray
    decay: np.ndarray
    coefficients: np.ndarray

    def at(self, y: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Return phi or one of its derivatives at heights ``y``, ``(nk, n, len(y))``."""
        coefficients = np.moveaxis(self.coefficients, -1, 0)
        return chebyshev.chebval(np.asarray(y, dtype=float), chebyshev.chebder(coefficients, derivative))


@functools.lru_cache(maxsize=16)
def stokes_modes(points: tuple[int, int], length: float) -> StokesModes:
    """Return the modes of a channel, computed once in float64.

        -decay (D^2 - k^2) phi = (D^2 - k^2)^2 phi,    phi = dphi/dy = 0 at y = -1 and y = 1

    in the weak sense, for polynomials of degree below ny: the integrals are exact, so the modes are orthonormal to
    round-off, and decay is positive. Viscosity multiplies decay, hence an implicit viscous step is a division.

    Args:
        points: ``(nx, ny)``; nx/2 wavenumbers, and ny - 4 modes of each.
        length: period in x, unit h.

    References, for expansions in divergence-free functions and in clamped Chebyshev polynomials: Moser, Moin and
    Leonard, J. Comput. Phys. 52, 524 (1983), doi:10.1016/0021-9991(83)90006-2; Shen, SIAM J. Sci. Comput. 16, 74
    (1995), doi:10.1137/0916006.
    """
    wavenumbers = 2 * np.pi / length * np.arange(points[0] // 2)
    modes = [_modes(points[1], wavenumber) for wavenumber in wavenumbers]
    decay, coefficients = (np.stack(parts) for parts in zip(*modes, strict=True))
    return StokesModes(wavenumbers=wavenumbers, decay=decay, coefficients=coefficients)


def gauss_points(points: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return heights and weights ``((m,), (m,))`` that integrate the product of three modes without error."""
    # A product of u and v of degree ny - 2 and ny - 1 with phi of degree ny - 1, by a rule exact to degree 2 m - 1.
    return np.polynomial.legendre.leggauss((3 * points[1] - 2) // 2)


def _modes(degrees: int, wavenumber: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ``decay (n,)`` and Chebyshev coefficients ``(n, ny)`` of the modes of one wavenumber."""
    basis = _clamped(degrees) if wavenumber else _mean(degrees)
    y, weights = gauss_points((0, degrees))
    root = np.sqrt(weights)[:, None]
    phi, slope, curvature = (root * chebyshev.chebval(y, chebyshev.chebder(basis, d)).T for d in range(3))
    # Orthogonal factors instead of the squared matrices: singular values lose no digits to the large ones among them.
    _, triangle = np.linalg.qr(np.concatenate([slope, wavenumber * phi]))
    vorticity = curvature - wavenumber**2 * phi
    scaled = np.linalg.solve(triangle.T, vorticity.T).T
    _, singular, modes = np.linalg.svd(scaled, full_matrices=False)
    coefficients = basis @ np.linalg.solve(triangle, modes[::-1].T)
    # Signs are arbitrary; these are the same on every machine: positive curvature on the lower wall.
    wall = chebyshev.chebval(-1.0, chebyshev.chebder(coefficients, 2))
    return singular[::-1] ** 2, (coefficients * np.sign(wall)).T


def _clamped(degrees: int) -> np.ndarray:
    """Return Chebyshev coefficients ``(ny, n)`` of polynomials that vanish on the walls with their slope."""
    j = np.arange(degrees - 4)
    basis = np.zeros((degrees, degrees - 4))
    basis[j, j], basis[j + 2, j], basis[j + 4, j] = 1, -2 * (j + 2) / (j + 3), (j + 1) / (j + 3)
    return basis / (j + 1) ** 2


def _mean(degrees: int) -> np.ndarray:
    """Return Chebyshev coefficients ``(ny, n)`` of polynomials whose slope vanishes on the walls."""
    j = np.arange(degrees - 4)
    slopes = np.zeros((degrees - 1, degrees - 4))
    slopes[j, j], slopes[j + 2, j] = 1, -1
    return chebyshev.chebint(slopes)
