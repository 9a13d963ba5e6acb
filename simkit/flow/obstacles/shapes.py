"""Shapes as signed distances: negative inside, positive outside, zero on the surface."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

# (x, y) or (x, y, z), arrays that broadcast against each other, to an array of distances.
type Shape = Callable[..., jax.Array]
type Point = tuple[jax.Array | float, ...]


def ball(center: Point, radius: jax.Array | float) -> Shape:
    """Return a circle, or a sphere in three dimensions.

        distance = |x - center| - radius

    Args:
        center: one number for each axis; with two numbers in three dimensions, a cylinder along z.
        radius: positive.
    """
    return lambda *x: length([a - c for a, c in zip(x, center, strict=False)]) - radius


def box(center: Point, half_widths: Point, rounding: jax.Array | float = 0.0) -> Shape:
    """Return a rectangle, or a block in three dimensions, with rounded edges.

        q = |x - center| - half_widths + rounding,   distance = |max(q, 0)| + min(max_i q_i, 0) - rounding

    Args:
        center: one number for each axis.
        half_widths: from the center to each side.
        rounding: radius of the edges, at most the smallest half width.
    """

    def distance(*x: jax.Array) -> jax.Array:
        q = [jnp.abs(a - c) - (b - rounding) for a, c, b in zip(x, center, half_widths, strict=True)]
        nearest_side = q[0]
        for other in q[1:]:
            nearest_side = jnp.maximum(nearest_side, other)
        return _joined(nearest_side, length([jnp.maximum(a, 0) for a in q])) - rounding

    return distance


def superellipse(center: Point, half_axes: Point, exponent: float = 2.0) -> Shape:
    """Return an ellipse (exponent 2) or a superellipse closer to a box (4, 6, ...), in two or three dimensions.

        g = (sum of |(x - center)/half_axes|^exponent)^(1/exponent),   distance = (g - 1) min(half_axes)

    This is zero on the surface but no distance away from it; users of shapes divide by the gradient.

    Args:
        center: one number for each axis.
        half_axes: from the center to the surface along each axis.
        exponent: at least 2.
    """

    def distance(*x: jax.Array) -> jax.Array:
        total = 0.0
        for a, c, b in zip(x, center, half_axes, strict=True):
            total = total + jnp.abs((a - c) / b) ** exponent
        away = total > 0
        g = jnp.where(away, jnp.where(away, total, 1) ** (1 / exponent), 0)
        smallest = half_axes[0]
        for b in half_axes[1:]:
            smallest = jnp.minimum(smallest, b)
        return (g - 1) * smallest

    return distance


def capsule(start: Point, end: Point, radius: jax.Array | float) -> Shape:
    """Return all points within a radius of a straight line between two points, in two or three dimensions.

    Args:
        start: one number for each axis.
        end: the other end of the line, another point.
        radius: positive.
    """

    def distance(*x: jax.Array) -> jax.Array:
        along = [b - a for a, b in zip(start, end, strict=True)]
        away = [c - a for c, a in zip(x, start, strict=True)]
        passed = sum(a * b for a, b in zip(along, away, strict=True)) / sum(a**2 for a in along)
        nearest = jnp.clip(passed, 0, 1)
        return length([b - nearest * a for a, b in zip(along, away, strict=True)]) - radius

    return distance


def cylinder(center: Point, radius: jax.Array | float, half_length: jax.Array | float, axis: int = 2) -> Shape:
    """Return a circular cylinder of finite length with flat ends, in three dimensions.

    Args:
        center: three numbers.
        radius: positive.
        half_length: from the center to each end.
        axis: along which it lies, 0, 1 or 2.
    """

    def distance(*x: jax.Array) -> jax.Array:
        arm = [a - c for a, c in zip(x, center, strict=True)]
        across = length([a for i, a in enumerate(arm) if i != axis]) - radius
        along = jnp.abs(arm[axis]) - half_length
        outside = length([jnp.maximum(across, 0), jnp.maximum(along, 0)])
        return _joined(jnp.maximum(across, along), outside)

    return distance


def half_space(point: Point, normal: Point) -> Shape:
    """Return the half-space behind a plane (a line in two dimensions).

    Args:
        point: on the plane.
        normal: unit vector out of the body.
    """

    def distance(*x: jax.Array) -> jax.Array:
        total = jnp.zeros(())
        for a, p, n in zip(x, point, normal, strict=True):
            total = total + (a - p) * n
        return total

    return distance


def union(*shapes: Shape, smoothing: jax.Array | float = 0.0) -> Shape:
    """Return the union of shapes.

    Args:
        *shapes: one or more.
        smoothing: length over which concave edges between two shapes are filled; 0 leaves them sharp.
    """

    def pair(a: jax.Array, b: jax.Array) -> jax.Array:
        filled = jnp.maximum(smoothing - jnp.abs(a - b), 0)
        # The quotient is zero for sharp edges.
        return jnp.minimum(a, b) - filled**2 / (4 * jnp.maximum(smoothing, jnp.finfo(a.dtype).tiny))

    def distance(*x: jax.Array) -> jax.Array:
        nearest = shapes[0](*x)
        for shape in shapes[1:]:
            nearest = pair(nearest, shape(*x))
        return nearest

    return distance


def complement(shape: Shape) -> Shape:
    """Return the complement of a shape, such as a container."""
    return lambda *x: -shape(*x)


def translate(shape: Shape, shift: Point) -> Shape:
    """Return a shape moved by ``shift``, one number for each axis."""
    return lambda *x: shape(*(a - s for a, s in zip(x, shift, strict=True)))


def rotate(shape: Shape, angle: jax.Array | float, pivot: Point) -> Shape:
    """Return a shape turned counterclockwise in the x-y plane.

    Args:
        shape: any.
        angle: in radians.
        pivot: (x, y) of the center of rotation.
    """
    cosine, sine = jnp.cos(angle), jnp.sin(angle)

    def distance(x: jax.Array, y: jax.Array, *z: jax.Array) -> jax.Array:
        a, b = x - pivot[0], y - pivot[1]
        return shape(pivot[0] + cosine * a + sine * b, pivot[1] - sine * a + cosine * b, *z)

    return distance


def _joined(nearest_side: jax.Array, outside: jax.Array) -> jax.Array:
    """Return the distance from the nearest side inside a body and on its surface, and that outside."""
    # In a sum of both, max(q, 0) and min(q, 0) would halve the slope exactly on the surface.
    return jnp.where(nearest_side > 0, outside, nearest_side)


def length(vector: list[jax.Array]) -> jax.Array:
    """Return the Euclidean length, with derivative zero where it is zero."""
    square = sum(a**2 for a in vector)
    away = square > 0
    return jnp.where(away, jnp.sqrt(jnp.where(away, square, 1)), 0)
