"""Solid sphere on a plane: its state, its slip velocity, and its motion under impulses at the contact point."""

import jax

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import Quaternion, turn
from simkit.rigid.algebra.vector import Vector, cross, dot

# m r^2 / I with the moment of inertia I = 2/5 m r^2.
INVERSE_INERTIA = 5 / 2


@pytree
class Ball:
    """State of one solid sphere; its mass cancels from the motion.

    Attributes:
        position: of the center in m.
        orientation: rotation from the body frame to the world frame.
        velocity: of the center in m/s.
        angular_velocity: in the world frame, in rad/s.
    """

    position: Vector
    orientation: Quaternion
    velocity: Vector
    angular_velocity: Vector


def slip_velocity(ball: Ball, normal: Vector, radius: jax.Array) -> Vector:
    """Return the slip velocity of the contact point along the plane, ``v - (v.n) n - r omega x n``.

    Args:
        ball: state of the sphere.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        Slip velocity in m/s, zero for a rolling sphere.
    """
    along = ball.velocity - dot(ball.velocity, normal) * normal
    return along - radius * cross(ball.angular_velocity, normal)


def push(ball: Ball, impulse: Vector, shift: Vector, duration: jax.Array, normal: Vector, radius: jax.Array) -> Ball:
    """Return a sphere after a time t during which it receives impulses at its contact point.

    ``v' = v + J``, ``omega' = omega - 5/(2r) n x J``, ``x' = x + v t + X``, and a rotation by ``omega t - 5/(2r) n x
    X``, where X is the time integral of the impulse received so far. A single impact has t = 0 and X = 0.

    Args:
        ball: state before.
        impulse: J per mass, the total, in m/s.
        shift: X in m.
        duration: t in s.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        State after; its orientation is exact if the axis of rotation is constant, as in any throw without side spin.
    """
    lever = INVERSE_INERTIA / radius
    return Ball(
        position=ball.position + duration * ball.velocity + shift,
        orientation=turn(ball.orientation, duration * ball.angular_velocity - lever * cross(normal, shift)),
        velocity=ball.velocity + impulse,
        angular_velocity=ball.angular_velocity - lever * cross(normal, impulse),
    )
