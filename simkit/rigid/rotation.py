"""Rotations in space as unit quaternions (w, x, y, z)."""

import jax
import jax.numpy as jnp

# Squared angle below which the exponential map is a Taylor series: its first dropped term is then under 1e-16.
SMALL_ANGLE_SQUARED = 1e-3


def identity(dtype: jax.typing.DTypeLike = float) -> jax.Array:
    """Return the rotation that changes nothing, (4,)."""
    return jnp.asarray([1, 0, 0, 0], dtype=dtype)


def multiply(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the quaternion product ``a b``: the rotation ``b`` followed by the rotation ``a``.

    Args:
        a: quaternion, (4,).
        b: quaternion, (4,).
    """
    w = a[0] * b[0] - jnp.dot(a[1:], b[1:])
    vector = a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])
    return jnp.concatenate([w[None], vector])


def rotate(quaternion: jax.Array, vector: jax.Array) -> jax.Array:
    """Return a vector given in the body's frame in the frame of space, ``q v q*``.

    Args:
        quaternion: unit quaternion, (4,).
        vector: any unit, (3,).
    """
    twice = 2 * jnp.cross(quaternion[1:], vector)
    return vector + quaternion[0] * twice + jnp.cross(quaternion[1:], twice)


def exponential(rotation_vector: jax.Array) -> jax.Array:
    """Return the rotation about an axis by an angle, ``exp(u/2) = (cos(|u|/2), u/|u| sin(|u|/2))``.

    Smooth everywhere, zero included, in every derivative that automatic differentiation takes.

    Args:
        rotation_vector: u, axis times angle in rad, (3,).

    Returns:
        Unit quaternion, (4,).
    """
    squared = jnp.dot(rotation_vector, rotation_vector)
    small = squared < SMALL_ANGLE_SQUARED
    half = jnp.sqrt(jnp.where(small, 1, squared)) / 2
    # The square root has no derivative at zero, so the series serves where it would be needed.
    near = jnp.where(small, squared, 0) / 4
    cosine = jnp.where(small, 1 - near / 2 * (1 - near / 12 * (1 - near / 30)), jnp.cos(half))
    sine_ratio = jnp.where(small, 1 - near / 6 * (1 - near / 20 * (1 - near / 42)), jnp.sin(half) / half)
    return jnp.concatenate([cosine[None], sine_ratio / 2 * rotation_vector])


def turn(quaternion: jax.Array, rotation_vector: jax.Array) -> jax.Array:
    """Return an orientation after a further rotation, ``exp(u/2) q`` scaled to unit length.

    With ``u = omega t`` this is the exact motion under a constant angular velocity, whatever the time.

    Args:
        quaternion: orientation before, (4,).
        rotation_vector: u in rad, in the frame of space, (3,).
    """
    turned = multiply(exponential(rotation_vector), quaternion)
    return turned / jnp.sqrt(jnp.dot(turned, turned))
