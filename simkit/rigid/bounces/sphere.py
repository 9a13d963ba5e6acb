"""A solid sphere on a plane: how its contact point moves, and how impulses there move and turn it."""

import jax

from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import Quaternion, turn
from simkit.rigid.algebra.vector import Vector, cross, dot

# m r^2 / I with the moment of inertia I = 2/5 m r^2.
INVERSE_INERTIA = 5 / 2


@pytree
class Ball:
    """State of one solid sphere, whose mass cancels from its motion.

    Attributes:
        position: of the center in m.
        orientation: from the body's frame to that of space.
        velocity: of the center in m/s.
        angular_velocity: in the frame of space, in rad/s.
    """

    position: Vector
    orientation: Quaternion
    velocity: Vector
    angular_velocity: Vector


def slip_velocity(ball: Ball, normal: Vector, radius: jax.Array) -> Vector:
    """Return the velocity of the contact point along the plane, ``v - (v.n) n - r omega x n``: zero when rolling.

    Args:
        ball: the sphere.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        Velocity in m/s.
    """
    along = ball.velocity - dot(ball.velocity, normal) * normal
    return along - radius * cross(ball.angular_velocity, normal)


def push(ball: Ball, impulse: Vector, shift: Vector, duration: jax.Array, normal: Vector, radius: jax.Array) -> Ball:
    """Move a sphere for a time t during which it receives impulses at its contact point.

    ``v' = v + J``, ``omega' = omega - 5/(2r) n x J``, ``x' = x + v t + X``, and a turn by ``omega t - 5/(2r) n x X``,
    where X integrates over time the impulse received so far. A single blow has t = 0 and X = 0.

    Args:
        ball: the sphere before.
        impulse: J per mass, the sum of all, in m/s.
        shift: X in m.
        duration: t in s.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        The sphere after; its orientation is exact where the spin keeps its axis, as in any throw without side spin.
    """
    lever = INVERSE_INERTIA / radius
    return Ball(
        position=ball.position + duration * ball.velocity + shift,
        orientation=turn(ball.orientation, duration * ball.angular_velocity - lever * cross(normal, shift)),
        velocity=ball.velocity + impulse,
        angular_velocity=ball.angular_velocity - lever * cross(normal, impulse),
    )
