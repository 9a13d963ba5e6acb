"""Velocity of a sum of Stokes modes, and the Galerkin projection of its advection."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.spectral.stokes_modes import StokesModes, gauss_points

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
