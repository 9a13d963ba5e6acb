"""Ghost layers and one-sided slopes at the sides of a domain, so that stencils are plain array slices."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.side_data import BoundaryVelocity, on_side, values_on
from simkit.flow.grid import Velocity, end, like
from simkit.flow.operators.differences import joined

type Share = jax.Array | float | None


def side_slope(
    f: jax.Array, component: int, axis: int, side: int, boundary: BoundaryVelocity, domain: Domain
) -> jax.Array | None:
    """Return the derivative of a component of the velocity along an axis on one of its sides, as one layer.

    None if there is no shear.

    Args:
        f: the component, on its faces.
        component: index of the velocity component.
        axis: another axis, bounded.
        side: 0 for the lower, 1 for the upper.
        boundary: velocity on the sides.
        domain: the domain.
    """
    what = domain.side(axis, side)
    side_values, values = on_side(boundary, axis, side)[component], values_on(boundary, axis, side, what)
    return what.slope(f, component, side_values, domain.place(axis, side), values)


def side_shares(component: int, axis: int, boundary: BoundaryVelocity, domain: Domain) -> tuple[Share, Share]:
    """Return the shares of the slope at a wall on the lower and upper side of a bounded axis, see `Side.share`.

    Args:
        component: of the velocity, along the sides.
        axis: across them.
        boundary: velocity on the sides.
        domain: the domain.
    """

    def share(side: int) -> Share:
        what = domain.side(axis, side)
        return what.share(component, domain.place(axis, side), values_on(boundary, axis, side, what))

    return share(0), share(1)


type Surrounded = tuple[jax.Array, ...]


def surround(velocity: Velocity, boundary: BoundaryVelocity, domain: Domain, layers: int = 1) -> Surrounded:
    """Return every component with a ghost point at both ends of each axis, except its own axis if that is bounded.

    On a periodic axis ghost points are those of the other end. Beyond a side they continue the tangential velocity
    with its slope there, see `simkit.flow.boundary.ghost_layers.side_slope`; beyond an open side also the normal
    velocity, without a slope. Differences and means of neighbors, see `step` and `middle`, then give slopes and values
    on every face.

    Args:
        velocity: components on their faces.
        boundary: velocity on the sides.
        domain: the domain.
        layers: 1; or 2, extrapolated linearly beyond the first layer of a bounded axis, also along the component's own.
    """
    surrounded = []
    for i, component in enumerate(velocity):
        f = component
        # Ghost points beyond an open side of its own axis are added last, from those of the other bounded axes.
        for axis in sorted(range(f.ndim), key=lambda k: (domain.sides[k] is None, k == i and any(domain.is_open(k)))):
            if domain.sides[axis] is None:
                size = f.shape[axis]
                last = jax.lax.slice_in_dim(f, size - layers, size, axis=axis)
                first = jax.lax.slice_in_dim(f, 0, layers, axis=axis)
                f = joined([last, f, first], axis)
                continue
            if axis != i:
                ends = [_beyond(component, f, i, axis, side, boundary, domain) for side in (0, 1)]
                f = joined([ends[0], f, ends[1]], axis)
            elif any(domain.is_open(axis)):
                lower, upper = domain.is_open(axis)
                before, after = ([end(f, axis, 0)] if lower else []), ([end(f, axis, 1)] if upper else [])
                f = joined([*before, f, *after], axis)
            if layers == 2:
                first, second, third, fourth = (_layer(f, axis, k) for k in (0, 1, -2, -1))
                f = joined([2 * first - second, f, 2 * fourth - third], axis)
        surrounded.append(f)
    return tuple(surrounded)


def lower(f: jax.Array, axis: int) -> jax.Array:
    """Return all points along an axis but the last."""
    return jax.lax.slice_in_dim(f, 0, f.shape[axis] - 1, axis=axis)


def upper(f: jax.Array, axis: int) -> jax.Array:
    """Return all points along an axis but the first."""
    return jax.lax.slice_in_dim(f, 1, f.shape[axis], axis=axis)


def step(f: jax.Array, axis: int) -> jax.Array:
    """Return the differences of neighbors along an axis."""
    return upper(f, axis) - lower(f, axis)


def middle(f: jax.Array, axis: int) -> jax.Array:
    """Return the means of neighbors along an axis."""
    return (upper(f, axis) + lower(f, axis)) / 2


def strip(f: jax.Array, axes: list[int]) -> jax.Array:
    """Return an array without the first and the last point along some axes."""
    for axis in axes:
        f = jax.lax.slice_in_dim(f, 1, f.shape[axis] - 1, axis=axis)
    return f


def along(f: jax.Array, values: np.ndarray, axis: int, domain: Domain) -> jax.Array | float:
    """Return widths or distances along an axis, shaped to broadcast against ``f``; one number on a periodic axis."""
    if domain.grid.axes[axis].periodic:
        return float(values[0])
    return like(f, domain.grid.along(values, axis))


def _beyond(
    component: jax.Array, f: jax.Array, i: int, axis: int, side: int, boundary: BoundaryVelocity, domain: Domain
) -> jax.Array:
    """Return the ghost layer beyond a side, with the lengths of ``f`` along the other axes; corners are not used."""
    layer = end(component, axis, side)
    slope = side_slope(component, i, axis, side, boundary, domain)
    if slope is not None:
        place = domain.place(axis, side)
        layer = layer + place.outward * place.width * slope
    missing = [(n - m) // 2 for n, m in zip(f.shape, layer.shape, strict=True)]
    missing[axis] = 0
    return jnp.pad(layer, [(m, m) for m in missing], mode="edge") if any(missing) else layer


def _layer(f: jax.Array, axis: int, index: int) -> jax.Array:
    return jax.lax.slice_in_dim(f, index % f.shape[axis], index % f.shape[axis] + 1, axis=axis)
