"""Positions, angles and displacements of joints, and their rates."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import Quaternion, conjugate, multiply, rotate
from simkit.rigid.algebra.vector import Vector, cross, dot, each
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.joints.joint import Joint


def anchors(motion: Motion, joint: Joint) -> tuple[Vector, Vector]:
    """Return the positions of the anchors of the first and second body in the world frame, in m.

    Args:
        motion: state of all bodies.
        joint: a joint of any kind.
    """
    return _point(motion, joint.first, joint.anchor), _point(motion, joint.second, joint.base)


def anchor_velocities(motion: Motion, bodies: Bodies, joint: Joint) -> tuple[Vector, Vector]:
    """Return the velocities of the anchors of the first and second body in the world frame, in m/s.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a joint of any kind.
    """
    spin = angular_velocity(motion, bodies)

    def moving(body: int | None, anchor: Vector) -> Vector:
        if body is None:
            return each(jnp.zeros_like, _point(motion, body, anchor))
        return motion.velocity[body] + cross(spin[body], rotate(motion.orientation[body], anchor))

    return moving(joint.first, joint.anchor), moving(joint.second, joint.base)


def axis_of(motion: Motion, joint: Joint) -> Vector:
    """Return the axis of a joint in the world frame, as fixed in its second body.

    Args:
        motion: state of all bodies.
        joint: a hinge or slider.
    """
    return _axis(_frame(motion, joint.second, joint.base_frame))


def hinge_angle(motion: Motion, joint: Joint, near: jax.Array | float = 0.0) -> jax.Array:
    """Return the angle in rad of the first body about the axis of a hinge, relative to the second.

    ``2 atan2(q_z, q_w)`` of the relative orientation q, which has a derivative everywhere. Of the angles that differ by
    whole turns the result is the one within half a turn of ``near``, and is continuous within that range.

    Args:
        motion: state of all bodies.
        joint: a hinge.
        near: reference angle in rad, such as the target of a servo or the rest angle of a spring.

    Example:
        >>> pivot = rigid.hinge(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> turned = (np.cos(np.pi / 12), 0.0, np.sin(np.pi / 12), 0.0)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0), orientation=turned)
        >>> print(f"{np.degrees(rigid.hinge_angle(motion, pivot)):.1f} degrees")
        30.0 degrees
    """
    frame = _frame(motion, joint.first, joint.frame)
    relative = multiply(conjugate(_frame(motion, joint.second, joint.base_frame)), frame)
    angle = 2 * jnp.arctan2(relative.v.z, relative.w)
    return angle - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round((angle - near) / (2 * jnp.pi)))


def hinge_rate(motion: Motion, bodies: Bodies, joint: Joint) -> jax.Array:
    """Return the angular velocity of the first body about the axis of a hinge, relative to the second, in rad/s.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a hinge.
    """
    spin = angular_velocity(motion, bodies)
    relative = spin[joint.first] if joint.second is None else spin[joint.first] - spin[joint.second]
    return dot(axis_of(motion, joint), relative)


def slider_displacement(motion: Motion, joint: Joint) -> jax.Array:
    """Return the displacement of the first anchor from the second along the axis of a slider, in m.

    Args:
        motion: state of all bodies.
        joint: a slider.
    """
    first, second = anchors(motion, joint)
    return dot(axis_of(motion, joint), first - second)


def _point(motion: Motion, body: int | None, anchor: Vector) -> Vector:
    like = motion.position.x[0]
    if body is None:
        return each(lambda component: jnp.broadcast_to(component, like.shape), anchor)
    return motion.position[body] + rotate(motion.orientation[body], anchor)


def _frame(motion: Motion, body: int | None, frame: Quaternion) -> Quaternion:
    return frame if body is None else multiply(motion.orientation[body], frame)


def _axis(frame: Quaternion) -> Vector:
    w, x, y, z = frame.w, frame.v.x, frame.v.y, frame.v.z
    return Vector(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
