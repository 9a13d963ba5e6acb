"""One-sided slopes of the velocity at the sides of a domain."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.boundary.domain import BoundaryVelocity, Domain, end
from simkit.flow.operators.differences import boundary_value


def side_slope(
    f: jax.Array, component: int, axis: int, side: int, boundary: BoundaryVelocity, domain: Domain
) -> jax.Array:
    """Return the derivative of a component of the velocity along an axis on one of its sides, as one layer.

    Where the velocity is prescribed it is ``domain.wall_slope``; elsewhere it is zero.

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
    return slope_at_side(f, boundary_value(f, component, axis, boundary, side), axis, side, domain)


def slope_at_side(f: jax.Array, value: jax.Array, axis: int, side: int, domain: Domain) -> jax.Array:
    """Return the derivative on a side, as one layer, of what is known at the centers along an axis and on the side.

    Args:
        f: the field.
        value: its value on the side.
        axis: across the side, bounded.
        side: 0 for the lower, 1 for the upper.
        domain: the domain.
    """
    near, far = side_weights(axis, domain)[side].tolist()
    slope = near * (end(f, axis, side) - value)
    if far:
        index = f.shape[axis] - 2 if side else 1
        second = jax.lax.slice_in_dim(f, index, index + 1, axis=axis)
        slope = slope - far * (second - value)
    return -slope if side else slope


def side_weights(axis: int, domain: Domain) -> np.ndarray:
    """Return ``(2, 2)`` weights ``[side, point]`` of the one-sided derivative at both ends of a bounded axis.

    With a the first and b the second center from the side, the slope into the fluid is
    ``weights[side, 0] (f_a - f_side) - weights[side, 1] (f_b - f_side)``, see `simkit.flow.boundary.domain.Domain`.

    Args:
        axis: a bounded one.
        domain: the domain.
    """
    across, weights = domain.grid.axes[axis], []
    for near, far in (across.centers[:2] - across.faces[0], across.faces[-1] - across.centers[:-3:-1]):
        if domain.wall_slope == "symmetric":
            weights.append((1 / near, 0.0))
        else:
            weights.append((far / (near * (far - near)), near / (far * (far - near))))
    return np.array(weights)
