"""Stokes modes of the flow between two walls, their velocity, and the Galerkin projection of its advection."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
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


# A parallel flow: heights to velocities.
type Base = Callable[[jax.Array], jax.Array]


def fields(modes: StokesModes, x: np.ndarray, y: np.ndarray) -> Callable[[jax.Array], tuple[jax.Array, ...]]:
    """Return ``amplitudes -> (u, v, vorticity)`` of the modes at positions ``x`` along and ``y`` across the channel.

        psi = sum over k, n of (a_kn cos(k x) + b_kn sin(k x)) phi_kn(y),
        u = dpsi/dy,    v = -dpsi/dx,    vorticity = dv/dx - du/dy

    Args:
        modes: the modes.
        x: ``(mx,)``.
        y: ``(my,)``.

    Returns:
        A function of ``amplitudes (nk, 2, n)``, a first and b second; the fields have shape ``(mx, my)``.
    """
    phi, slope, curvature = (modes.at(y, d) for d in range(3))
    k = modes.wavenumbers[:, None, None]
    across = np.concatenate([slope, k * phi, k**2 * phi - curvature], axis=-1)
    even, odd = _along(x, modes.wavenumbers)
    along = np.stack([even, -odd, even])

    def run(amplitudes: jax.Array) -> tuple[jax.Array, ...]:
        u, v, vorticity = _einsum("fxw,wfy->fxy", along, _across(amplitudes, across, 3))
        return u, v, vorticity

    return run


def advection(modes: StokesModes, points: tuple[int, int]) -> Callable[[jax.Array, Base], jax.Array]:
    """Return ``(amplitudes, base) -> rate``, the rate of change of the amplitudes by advection, without aliasing.

        rate = integral of (u - U e_x)(u + U e_x) : grad(w)   over the channel, for each mode w,

    which is minus the projection of ``div(u u)``, for a velocity u made of a parallel flow U(y) and the modes. Modes
    have no divergence and vanish on the walls, so there is no pressure, and the rate does not change the energy. The
    square of U drops out of the integral: it is left out of the products, so a small wave loses no digits to it.

    Args:
        modes: the modes.
        points: ``(nx, ny)`` of those modes.

    Returns:
        A function of ``amplitudes (nk, 2, n)`` and of ``base``, a function of heights that returns U there.
    """
    y, weights = gauss_points(points)
    # Number of points on which products of two harmonics up to kmax are not aliased onto harmonics up to kmax.
    count = 3 * (len(modes.wavenumbers) - 1) + 1
    even, odd = _along(2 * np.pi * np.arange(count) / count, np.arange(len(modes.wavenumbers)))
    mean = np.where(np.arange(len(modes.wavenumbers)) == 0, 1.0, 2.0).repeat(2) / count
    phi, slope, curvature = (modes.at(y, d) for d in range(3))
    k = modes.wavenumbers[:, None, None]
    across = np.concatenate([slope, k * phi], axis=-1)
    tests = np.swapaxes(np.concatenate([weights * k * slope, weights * (curvature + k**2 * phi)], axis=-1), 1, 2)
    to_x, from_x = np.stack([even, -odd]), np.stack([odd * mean, even * mean])

    def run(amplitudes: jax.Array, base: Base) -> jax.Array:
        parallel = base(like(amplitudes, y))
        u, v = _einsum("fxw,wfy->fxy", to_x, _across(amplitudes, across, 2))
        products = jnp.stack([u * (u + 2 * parallel) - v * v, (u + parallel) * v])
        harmonics = _einsum("fxw,fxy->wfy", from_x, products)
        return _einsum("kyn,kcy->kcn", tests, harmonics.reshape(*amplitudes.shape[:2], -1))

    return run


def linear_advection(modes: StokesModes, harmonic: int, points: tuple[int, int]) -> np.ndarray:
    """Return the complex matrix ``(n, n)`` with which the flow ``U = 1 - y^2`` advects small waves of one harmonic.

    It acts on ``A = a - i b``, since ``psi = Re(A exp(i k x) phi)``. Less ``decay/Re`` on the diagonal it is the
    Orr-Sommerfeld operator for these modes.
    """
    y, weights = gauss_points(points)
    k, base = modes.wavenumbers[harmonic], (1 - y**2) * weights
    phi, slope, curvature = (modes.at(y, d)[harmonic] for d in range(3))
    return -1j * k * (2 * (slope * base) @ slope.T + ((curvature + k**2 * phi) * base) @ phi.T)


def like(array: jax.Array, values: np.ndarray) -> jax.Array:
    """Return constant ``values`` in the precision of ``array``."""
    return jnp.asarray(values, array.dtype)


def _along(x: np.ndarray, wavenumbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of every wavenumber side by side, ``(mx, 2 nk)``, and their derivatives by k x."""
    phase = np.asarray(x)[:, None] * wavenumbers
    cosine, sine = np.cos(phase), np.sin(phase)
    even, odd = np.stack([cosine, sine], axis=-1), np.stack([-sine, cosine], axis=-1)
    return even.reshape(len(x), -1), odd.reshape(len(x), -1)


def _across(amplitudes: jax.Array, matrices: np.ndarray, count: int) -> jax.Array:
    """Return ``(2 nk, count, my)``, for cosine and sine each the ``count`` functions of y that ``matrices`` holds."""
    values = _einsum("kny,kcn->kcy", matrices, amplitudes)
    return values.reshape(2 * len(matrices), count, -1)


def _einsum(subscripts: str, matrices: np.ndarray, values: jax.Array) -> jax.Array:
    return jnp.einsum(subscripts, like(values, matrices), values, precision=jax.lax.Precision.HIGHEST)
