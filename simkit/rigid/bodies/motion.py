"""Positions, orientations and momenta of rigid bodies, and their energies."""

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import Quaternion, identity, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, cross, dot, times, total, zeros
from simkit.rigid.bodies.bodies import Bodies


@pytree
class Motion:
    """State of rigid bodies, one number each along the first axis.

    It holds angular momentum, not angular velocity: without torque that is constant, so the gyroscopic term of the
    equations of motion never appears and a free body keeps its angular momentum to the last bit.

    Attributes:
        position: of the center of mass in m.
        orientation: from the body's frame to that of space.
        velocity: of the center of mass in m/s.
        angular_momentum: about the center of mass, in the frame of space, in kg m^2/s.
    """

    position: Vector
    orientation: Quaternion
    velocity: Vector
    angular_momentum: Vector


@pytree
class Wrench:
    """What acts on bodies.

    Attributes:
        force: on the center of mass in N.
        torque: about the center of mass, in the frame of space, in N m.
    """

    force: Vector
    torque: Vector

    def __add__(self, other: "Wrench") -> "Wrench":
        return Wrench(force=self.force + other.force, torque=self.torque + other.torque)


def motion_of(
    bodies: Bodies,
    position: Vector,
    orientation: Quaternion | None = None,
    velocity: Vector | None = None,
    angular_velocity: Vector | None = None,
) -> Motion:
    """Return the state of bodies from their positions and, unless they are zero, orientations and velocities.

    Args:
        bodies: what moves.
        position: of the centers of mass in m, (n,) each.
        orientation: the body's axes are those of space by default.
        velocity: in m/s; at rest by default.
        angular_velocity: in the frame of space, in rad/s; none by default.
    """
    still = zeros(bodies.mass)
    orientation = identity(bodies.mass) if orientation is None else orientation
    angular_velocity = still if angular_velocity is None else angular_velocity
    return Motion(
        position=still + position,
        orientation=orientation,
        velocity=still if velocity is None else still + velocity,
        angular_momentum=momentum_of_rotation(bodies, orientation, still + angular_velocity),
    )


def momentum_of_rotation(bodies: Bodies, orientation: Quaternion, angular_velocity: Vector) -> Vector:
    """Return the angular momentum ``L = R I R^T omega`` about the center of mass.

    Args:
        bodies: with their principal moments I.
        orientation: R.
        angular_velocity: omega in the frame of space, in rad/s.
    """
    return rotate(orientation, times(bodies.inertia, unrotate(orientation, angular_velocity)))


def angular_velocity(motion: Motion, bodies: Bodies) -> Vector:
    """Return the angular velocity ``omega = R I^-1 R^T L`` in the frame of space, in rad/s.

    Args:
        motion: state.
        bodies: what moves.
    """
    inside, moments = unrotate(motion.orientation, motion.angular_momentum), bodies.inertia
    return rotate(motion.orientation, Vector(inside.x / moments.x, inside.y / moments.y, inside.z / moments.z))


def kinetic_energy(motion: Motion, bodies: Bodies) -> jax.Array:
    """Return ``sum m v^2 / 2 + L . omega / 2`` in J.

    Args:
        motion: state.
        bodies: what moves.
    """
    moving = bodies.mass * dot(motion.velocity, motion.velocity)
    turning = dot(motion.angular_momentum, angular_velocity(motion, bodies))
    return jnp.sum(moving + turning, axis=0) / 2


def momentum(motion: Motion, bodies: Bodies) -> Vector:
    """Return the total momentum ``sum m v`` in kg m/s.

    Args:
        motion: state.
        bodies: what moves.
    """
    return total(bodies.mass * motion.velocity)


def angular_momentum(motion: Motion, bodies: Bodies) -> Vector:
    """Return the total angular momentum about the origin, ``sum x x m v + L``, in kg m^2/s.

    Args:
        motion: state.
        bodies: what moves.
    """
    return total(cross(motion.position, bodies.mass * motion.velocity) + motion.angular_momentum)
