"""Rotations in space as unit quaternions (w, x, y, z)."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, each

# Squared angle below which the exponential map is a Taylor series: its first dropped term is then under 1e-16.
SMALL_ANGLE_SQUARED = 1e-3


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Quaternion:
    """Quaternions by components, arrays of one shape.

    Attributes:
        w: real parts.
        v: vector parts.
    """

    w: jax.Array
    v: Vector

    def __getitem__(self, index: object) -> "Quaternion":
        """Return the quaternions that an array index selects."""
        return each(lambda component: component[index], self)


def identity(like: jax.Array) -> Quaternion:
    """Return identity rotations in the shape and precision of an array."""
    zero = jnp.zeros_like(like)
    return Quaternion(jnp.ones_like(like), Vector(zero, zero, zero))


def quaternion(values: jax.Array) -> Quaternion:
    """Return the quaternions along the last axis of an array.

    Args:
        values: (..., 4), in the order w, x, y, z.
    """
    return Quaternion(values[..., 0], Vector(values[..., 1], values[..., 2], values[..., 3]))


def stacked(q: Quaternion) -> jax.Array:
    """Return quaternions as one array with the components along a last axis, (..., 4)."""
    return jnp.stack([q.w, q.v.x, q.v.y, q.v.z], axis=-1)


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the product ``a b``: the rotation ``b`` followed by the rotation ``a``."""
    return Quaternion(a.w * b.w - dot(a.v, b.v), a.w * b.v + b.w * a.v + cross(a.v, b.v))


def conjugate(q: Quaternion) -> Quaternion:
    """Return ``q*``, the inverse rotation."""
    return Quaternion(q.w, -q.v)


def rotate(q: Quaternion, a: Vector) -> Vector:
    """Return vectors of the body frame in the world frame, ``q a q*``."""
    twice = staged(2 * cross(q.v, a))
    return a + q.w * twice + cross(q.v, twice)


def unrotate(q: Quaternion, a: Vector) -> Vector:
    """Return vectors of the world frame in the body frame, ``q* a q``."""
    return rotate(conjugate(q), a)


def axes_of(q: Quaternion) -> tuple[Vector, Vector, Vector]:
    """Return the three body axes in the world frame: the columns of the rotation matrix."""
    w, (x, y, z) = q.w, (q.v.x, q.v.y, q.v.z)
    return (
        Vector(1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        Vector(2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        Vector(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )


def exponential(rotation_vector: Vector) -> Quaternion:
    """Return the rotation about an axis by an angle, ``exp(u/2) = (cos(|u|/2), u/|u| sin(|u|/2))``.

    All derivatives exist everywhere, zero included.

    Args:
        rotation_vector: u, axis times angle in rad.
    """
    squared = dot(rotation_vector, rotation_vector)
    small = squared < SMALL_ANGLE_SQUARED
    half = jnp.sqrt(jnp.where(small, 1, squared)) / 2
    # The square root has no derivative at zero; the series replaces it there.
    near = jnp.where(small, squared, 0) / 4
    cosine = jnp.where(small, 1 - near / 2 * (1 - near / 12 * (1 - near / 30)), jnp.cos(half))
    sine_ratio = jnp.where(small, 1 - near / 6 * (1 - near / 20 * (1 - near / 42)), jnp.sin(half) / half)
    cosine, sine_ratio = staged((cosine, sine_ratio))
    return Quaternion(cosine, sine_ratio / 2 * rotation_vector)


def unit(q: Quaternion) -> Quaternion:
    """Return a quaternion normalized to length 1, which removes rounding."""
    scale = staged(1 / jnp.sqrt(q.w * q.w + dot(q.v, q.v)))
    return Quaternion(scale * q.w, scale * q.v)


def on_sphere(q: Quaternion) -> Quaternion:
    """Return the same unit quaternion with the derivatives of ``q / |q|``: none along q, which is no rotation."""
    squared = q.w * q.w + dot(q.v, q.v)
    length = jnp.sqrt(jnp.where(squared > 0, squared, 1))
    # The quotient is 1 to the last bit: a quaternion of another length keeps it, and is refused by `check_motion`.
    scale = staged(jax.lax.stop_gradient(length) / length)
    return Quaternion(scale * q.w, scale * q.v)


def turn(q: Quaternion, rotation_vector: Vector) -> Quaternion:
    """Return an orientation after a further rotation, ``exp(u/2) q`` scaled to unit length.

    With ``u = omega t`` this is the exact motion under a constant angular velocity, for any time.

    Args:
        q: orientation before.
        rotation_vector: u in rad, in the world frame.
    """
    return unit(staged(multiply(staged(exponential(rotation_vector)), q)))
