"""Interpolation one spacing along the normal of a surface, from neighboring grid points."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.arrays import like
from simkit.flow.grid import Axis, Grid

# Width of the smoothed transition between the two neighbors along an axis, where the normal is perpendicular to it.
ROUNDING = 0.1


class Neighbors:
    """Weights of the neighbors in the direction of the normals.

    Along axis i the upper neighbor, at distance h, has the weight ``spacing (n_i + |n_i|)/(2 h)``, the lower one that
    of the opposite direction. Their sum is 1, and they are the plane through the neighbors at ``spacing n`` from here.
    In place of ``|n|`` stands ``sqrt(n^2 + ROUNDING^2)``, which changes neither.
    """

    def __init__(self, component: int | None, grid: Grid, normal: Sequence[jax.Array]):
        self.periodic = [axis.periodic for axis in grid.axes]
        self.weights = []
        for i, (axis, n) in enumerate(zip(grid.axes, normal, strict=True)):
            size = jnp.sqrt(n**2 + ROUNDING**2)
            below, above = (like(n, grid.along(h, i)) for h in _steps(axis, i == component))
            self.weights.append(((size - n) / (2 * below), (size + n) / (2 * above)))
        self.spacing = 1 / sum(a + b for a, b in self.weights)

    def outward(self, f: jax.Array) -> jax.Array:
        """Return values one spacing further along the normal; constant beyond the ends of bounded axes."""
        total = jnp.zeros_like(f)
        for i, (below, above) in enumerate(self.weights):
            lower, upper = self._both(f, i)
            total = total + below * lower + above * upper
        return self.spacing * total

    def _both(self, f: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
        if self.periodic[axis]:
            return jnp.roll(f, 1, axis), jnp.roll(f, -1, axis)
        n = f.shape[axis]
        padded = jnp.pad(f, [(1, 1) if k == axis else (0, 0) for k in range(f.ndim)], mode="edge")
        return jax.lax.slice_in_dim(padded, 0, n, axis=axis), jax.lax.slice_in_dim(padded, 2, n + 2, axis=axis)


def _steps(axis: Axis, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances to the points below and above each inner point of a component along one axis."""
    if axis.periodic:
        return axis.widths, axis.widths
    if own:
        return axis.widths[:-1], axis.widths[1:]
    padded = np.concatenate([axis.distances[:1], axis.distances, axis.distances[-1:]])
    return padded[:-1], padded[1:]
