"""One-sided slopes of the velocity at the sides of a domain."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.differences import boundary_value
from simkit.flow.domain import BoundaryVelocity, Domain, end
from simkit.flow.grid import Axis, Grid


def side_slope(
    f: jax.Array, component: int, axis: int, side: int, boundary: BoundaryVelocity, domain: Domain
) -> jax.Array:
    """Return the derivative of a component of the velocity along an axis on one of its sides, as one layer.

    Where the velocity is prescribed it is the slope of the parabola through the side and the two nearest points. So
    Couette flow is exact on any grid, and Poiseuille flow where the cells are equal. Elsewhere it is zero.

    Args:
        f: the component, on its faces.
        component: which one.
        axis: another axis, bounded.
        side: 0 for the lower, 1 for the upper.
        boundary: velocity on the sides.
        domain: the domain.
    """
    if not domain.prescribes(axis, side):
        return jnp.zeros_like(end(f, axis, side))
    return slope_at_side(f, boundary_value(f, component, axis, boundary, side), axis, side, domain.grid)


def slope_at_side(f: jax.Array, value: jax.Array, axis: int, side: int, grid: Grid) -> jax.Array:
    """Return the derivative on a side, as one layer, of what is known at the centers along an axis and on the side.

    Args:
        f: the field.
        value: its value on the side.
        axis: across the side, bounded.
        side: 0 for the lower, 1 for the upper.
        grid: the grid.
    """
    index = f.shape[axis] - 2 if side else 1
    second = jax.lax.slice_in_dim(f, index, index + 1, axis=axis)
    near, far = side_weights(grid.axes[axis])[side].tolist()
    slope = near * (end(f, axis, side) - value) - far * (second - value)
    return -slope if side else slope


def side_weights(axis: Axis) -> np.ndarray:
    """Return ``(2, 2)`` weights ``[side, point]`` of the one-sided derivative at both ends of a bounded axis.

    With a the first and b the second center from the side, the parabola through the side and both has the slope
    ``weights[side, 0] (f_a - f_side) - weights[side, 1] (f_b - f_side)`` into the fluid.
    """
    weights = []
    for near, far in (axis.centers[:2] - axis.faces[0], axis.faces[-1] - axis.centers[:-3:-1]):
        weights.append((far / (near * (far - near)), near / (far * (far - near))))
    return np.array(weights)
