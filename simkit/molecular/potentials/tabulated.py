"""Pair energies in a table: cubic splines through values at given distances, differentiable by the values."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.errors import UserError
from simkit.molecular.potentials.pair import PairPotential, pair_potential


def tabulated(distances: Sequence[float] | np.ndarray) -> PairPotential:
    """Return the pair potential of a cubic spline through energies at given distances, which are its parameter.

    The third derivative is continuous at the second distance and the last but one (not-a-knot), so cubics are exact.
    Beyond the last distance the energy is zero, below the first one NaN. In a scenario file a table stands in the place
    of an energy: ``{ energy = { file = "pair.txt", x = "r", y = "u", interpolation = "cubic" } }``.

    Args:
        distances: length, increasing, at least 4, (K,). The parameter ``values`` of the potential is the energy at
            each, (K,).

    Raises:
        UserError: if there are fewer than 4 distances, or they do not increase.

    Example:
        >>> r = np.linspace(0.8, 2.5, 40)
        >>> spline, at, values = molecular.potentials.tabulated(r), jnp.array(1.1), jnp.asarray(1 / r)
        >>> print(f"{spline.energy(at, values=values):.4f}, {spline.force(at, values=values):.3f}")
        0.9091, 0.826

    Reference: de Boor, A Practical Guide to Splines, Springer (1978), doi:10.1007/978-1-4612-6333-3.
    """
    points = np.asarray(distances, float)
    if points.ndim != 1 or len(points) < 4 or not (np.diff(points) > 0).all():
        raise UserError(f"distances has shape {points.shape}; give at least 4 numbers, each larger than the one before")
    from scipy.interpolate import CubicSpline

    # The slopes of the spline at its points are linear in its values.
    slopes_of = CubicSpline(points, np.eye(len(points)))(points, 1)

    def energy(distance: jax.Array, *, values: jax.Array) -> jax.Array:
        knots, matrix = jnp.asarray(points, values.dtype), jnp.asarray(slopes_of, values.dtype)
        slopes = precise_product(matrix, values)
        below = jnp.searchsorted(knots, jax.lax.stop_gradient(distance), side="right", method="scan_unrolled") - 1
        below = jnp.clip(below, 0, len(points) - 2)
        step = knots[below + 1] - knots[below]
        t = (distance - knots[below]) / step
        first, rise = values[below], values[below + 1] - values[below]
        start, end = step * slopes[below], step * slopes[below + 1]
        value = first + t * (start + t * (3 * rise - 2 * start - end + t * (start + end - 2 * rise)))
        return jnp.where(distance > points[-1], 0, jnp.where(distance < points[0], jnp.nan, value))

    return pair_potential(energy)._replace(reach=lambda values: jnp.asarray(points[-1], values.dtype))
