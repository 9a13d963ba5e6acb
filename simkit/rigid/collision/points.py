"""Contact points, the output of collision detection, placed shapes, its input, and the layout of points by slots."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import Quaternion
from simkit.rigid.algebra.vector import Vector, each


@pytree
class Placed:
    """Shapes with position and orientation; the first axis of every array counts the bodies or pairs.

    Attributes:
        position: of the centers in m.
        orientation: rotation from the body frame to the world frame.
        half_lengths: of the box that the radius rounds, see `simkit.rigid.bodies.bodies.Bodies`, in m.
        radius: in m.
    """

    position: Vector
    orientation: Quaternion
    half_lengths: Vector
    radius: jax.Array


@pytree
class Points:
    """Potential contact points of a first body with a second one or a plane, arrays (slots, pairs, ...).

    Every pair of shapes has a fixed number of slots. A slot keeps its geometric meaning (for example a corner) from
    step to step, so that impulses can be carried over.

    Attributes:
        position: midway between the surfaces, in m.
        normal: unit vector from the second body to the first.
        gap: distance of the surfaces along the normal in m, negative where they overlap.
    """

    position: Vector
    normal: Vector
    gap: jax.Array


# Gap in m that marks an unused slot: larger than any real one, and finite.
FAR = 1e6


def along_slots(values: Sequence[float], like: jax.Array) -> np.ndarray:
    """Return one number per slot, shaped (slots, 1, ...) to broadcast against arrays of the pairs.

    Args:
        values: one number per slot.
        like: an array of the pairs, (pairs, ...).
    """
    return np.asarray(values, dtype=like.dtype).reshape(-1, *(1,) * like.ndim)


def in_slots(points: Points) -> Points:
    """Return points broadcast to one position, normal and gap per slot.

    Args:
        points: arrays that broadcast against each other.
    """
    shape = jnp.broadcast_shapes(points.position.x.shape, points.normal.x.shape, points.gap.shape)
    return each(lambda values: jnp.broadcast_to(values, shape), points)


def midway(surface: Vector, normal: Vector, gap: jax.Array) -> Vector:
    """Return the points half a gap away from the surface of the first body, towards the second.

    Args:
        surface: points of the first body's surface in m.
        normal: unit vectors from the second body to the first.
        gap: in m.
    """
    return surface - gap / 2 * normal


def sign(value: jax.Array) -> jax.Array:
    """Return 1 or -1, and 1 for zero."""
    return jnp.where(value >= 0, 1, -1).astype(value.dtype)


def clamp(value: jax.Array, half: jax.Array) -> jax.Array:
    """Return the nearest number within plus and minus ``half``."""
    return jnp.clip(value, -half, half)


def cyclic[T](is_first: jax.Array, is_second: jax.Array, a: T, b: T, c: T) -> tuple[T, T, T]:
    """Return three vectors or numbers rotated cyclically so that the chosen one comes first.

    Args:
        is_first: whether ``a`` is chosen, bool.
        is_second: where ``a`` is not chosen, whether ``b`` is, bool; else ``c`` is.
        a: vectors or numbers.
        b: likewise.
        c: likewise.
    """

    def chosen(first: T, second: T, third: T) -> T:
        return each(lambda x, y, z: jnp.where(is_first, x, jnp.where(is_second, y, z)), first, second, third)

    return chosen(a, b, c), chosen(b, c, a), chosen(c, a, b)
