"""Symmetric tridiagonal systems, solved by elimination along the first axis for all other indices at once.

The system of row j, with positive couplings a and not negative excess s, is the balance of a diffusive flux::

    s[j] p[j] + a[j] (p[j] - p[j+1]) + a[j-1] (p[j] - p[j-1]) = b[j]

Every recurrence below adds a small change to an accumulated value, and no coefficient is a difference of larger ones.
So smooth solutions keep their accuracy in float32 where s is far smaller than a: the usual recurrence at the same cost
errs up to twenty times as much in long channels.

Reference: Grassmann, Taksar and Heyman, Oper. Res. 33, 1107 (1985), doi:10.1287/opre.33.5.1107, for elimination without
subtraction.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def matrix_of_slopes(slopes: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the ``(n, n)`` matrix of the divergence of slopes between neighbors, tridiagonal.

    Only the three diagonals of a matrix of zeros are written; differences of a unit matrix took seconds on a fine axis.

    Args:
        slopes: ``(n + 1,)`` inverse distances between neighboring values; the first and last entry to the values beyond
            the ends, zero if there are none.
        widths: ``(n,)`` widths of the volumes.
    """
    count = len(widths)
    matrix, rows = np.zeros((count, count)), np.arange(count)
    matrix[rows[:-1], rows[1:]] = slopes[1:-1] / widths[:-1]
    matrix[rows[1:], rows[:-1]] = slopes[1:-1] / widths[1:]
    matrix[rows, rows] = (-slopes[1:] - slopes[:-1]) / widths
    return matrix


def eliminate(excess: np.ndarray, coupling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients ``(fraction, inverse)`` of the elimination, each ``(n, ...)``, in NumPy.

    Args:
        excess: ``(n, ...)`` s. Where it is zero in all rows, the system is singular and the last unknown becomes zero.
        coupling: ``(n - 1,)`` a.
    """
    fraction, inverse = np.empty_like(excess), np.empty_like(excess)
    carried = np.zeros(excess.shape[1:])
    for j, a in enumerate([*coupling, 0.0]):
        total = excess[j] + carried
        pivot = a + total
        inverse[j] = np.divide(1.0, pivot, out=np.zeros_like(pivot), where=pivot > 0)
        fraction[j] = total * inverse[j]
        carried = a * fraction[j]
    return fraction, inverse


def eliminate_traced(excess: jax.Array, coupling: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the coefficients of `eliminate` for traced coefficients of a regular system."""

    def advance(carried, row):
        s, a = row
        total = s + carried
        inverse = 1 / (a + total)
        fraction = total * inverse
        return a * fraction, (fraction, inverse)

    padded = jnp.pad(coupling, (0, 1))
    return jax.lax.scan(advance, jnp.zeros_like(excess[0]), (excess, padded))[1]


def substitute(
    source: jax.Array,
    weights: jax.Array,
    fraction: jax.Array,
    inverse: jax.Array,
    mean: jax.Array | float = 0.0,
    beyond: Callable[[jax.Array], jax.Array] = jnp.zeros_like,
) -> jax.Array:
    """Return the solution p of the system with the right-hand side ``b = weights * source``.

    Args:
        source: ``(n, ...)``, real or complex.
        weights: ``(n,)``.
        fraction: from `eliminate`, ``(n, ...)``, broadcast to the shape of the source.
        inverse: from `eliminate`, likewise.
        mean: number to subtract from the source in the first column.
        beyond: function from the flux out of the last row, one number per column, to the value behind it; a last row
            whose fraction and inverse are zero takes that value itself.
    """
    shape = source.shape
    source, fraction, inverse = (_rows(f, shape) for f in (source, fraction, inverse))
    # Real and imaginary parts are carried separately, so that real coefficients multiply each once.
    parts = (lambda f: (f.real, f.imag)) if jnp.iscomplexobj(source) else (lambda f: (f,))
    joined = (lambda f: jax.lax.complex(*f)) if jnp.iscomplexobj(source) else (lambda f: f[0])

    def forward(carried, row):
        (flux, kept), (b, w, e, i) = carried, row
        flux = tuple(y + (w * (s - m) - r) for y, s, m, r in zip(flux, parts(b), means, kept, strict=True))
        return (flux, tuple(e * y for y in flux)), tuple(i * y for y in flux)

    def backward(above, row):
        z, e = row
        p = tuple(q + (y - e * q) for q, y in zip(above, z, strict=True))
        return p, joined(p)

    zero = tuple(jnp.zeros_like(part) for part in parts(source[0]))
    means = parts(jnp.zeros_like(source[0]).at[0].set(mean))
    (flux, _), z = jax.lax.scan(forward, (zero, zero), (source, weights, fraction, inverse))
    return jax.lax.scan(backward, parts(beyond(joined(flux))), (z, fraction), reverse=True)[1].reshape(shape)


def _rows(f: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return the array as ``(n, rows)``, since one long loop is faster than nested ones; rows is 1 for equal ones."""
    if any(length > 1 for length in f.shape[1:]):
        f = jnp.broadcast_to(f, shape)
    return f.reshape(shape[0], -1)
