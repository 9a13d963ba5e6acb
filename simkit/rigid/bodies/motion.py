"""State of rigid bodies (positions, orientations, momenta), wrenches, and kinetic energy."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.errors import UserError, one_line
from simkit.rigid.algebra.quaternion import (
    Quaternion,
    conjugate,
    identity,
    multiply,
    on_sphere,
    rotate,
    unrotate,
)
from simkit.rigid.algebra.vector import Vector, cross, dot, times, total, zeros
from simkit.rigid.bodies.bodies import Bodies

type Rows = jax.Array | Sequence[float] | Sequence[Sequence[float]]
# Vectors, or numbers of shape (3,) or (n, 3).
type Places = Vector | Rows


@pytree
class Motion:
    """State of rigid bodies; the first axis of every array counts the bodies.

    The state variable is the angular momentum, not the angular velocity: the equations of motion then have no
    gyroscopic term, and a free body keeps its angular momentum to the last bit.

    Attributes:
        position: of the center of mass in m.
        orientation: rotation from the body frame to the world frame.
        velocity: of the center of mass in m/s.
        angular_momentum: about the center of mass, in the world frame, in kg m^2/s.

    Example:
        >>> top = rigid.repeat(rigid.sphere(1.0, 0.5), 1)
        >>> motion = rigid.motion_of(top, (0.0, 0.0, 1.0), angular_velocity=(0.0, 0.0, 10.0))
        >>> print(f"{motion.angular_momentum.z[0]:.2f} = 2/5 m r^2 omega")
        1.00 = 2/5 m r^2 omega
        >>> isinstance(motion, rigid.Motion)
        True
    """

    position: Vector
    orientation: Quaternion
    velocity: Vector
    angular_momentum: Vector


@pytree
class Wrench:
    """Forces and torques on bodies.

    Attributes:
        force: on the center of mass in N.
        torque: about the center of mass, in the world frame, in N m.

    Example:
        >>> still = rigid.vector(jnp.zeros((1, 3)))
        >>> push = rigid.Wrench(force=rigid.vector(jnp.array([[2.0, 0.0, 0.0]])), torque=still)
        >>> push.force.x.tolist()
        [2.0]
    """

    force: Vector
    torque: Vector

    def __add__(self, other: "Wrench") -> "Wrench":
        return Wrench(force=self.force + other.force, torque=self.torque + other.torque)


def motion_of(
    bodies: Bodies,
    position: Places,
    orientation: Quaternion | Rows | None = None,
    velocity: Places | None = None,
    angular_velocity: Places | None = None,
) -> Motion:
    """Return the state of bodies from their positions and, unless they are zero, orientations and velocities.

    Args:
        bodies: constants of the bodies.
        position: of the centers of mass, or of the frames in which the shapes of compounds were given, in m: vectors,
            or rows of three numbers, (n, 3), or (3,) for all.
        orientation: rotation from the body frame, or that frame, to the world frame: quaternions, or rows (w, x, y, z),
            (n, 4), or (4,) for all; the identity by default.
        velocity: in m/s, likewise; zero by default.
        angular_velocity: in the world frame, in rad/s, likewise; zero by default.

    Raises:
        UserError: if one is neither one vector nor one for each body.

    Example:
        >>> balls = rigid.repeat(rigid.sphere(1.0, 0.5), 2)
        >>> motion = rigid.motion_of(balls, [[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]], velocity=(3.0, 0.0, 0.0))
        >>> motion.velocity.x.tolist(), motion.position.x.tolist()
        ([3.0, 3.0], [0.0, 2.0])
    """
    # Adding zeros broadcasts to one number per body, in the precision of the bodies.
    zero = zeros(bodies.mass)

    def added(name: str, value: Places | None) -> Vector:
        return zero if value is None else zero + vectors_of(name, value, bodies.mass.shape)

    spin = added("angular_velocity", angular_velocity)
    orientation = identity(bodies.mass) if orientation is None else rotations_of(orientation, bodies.mass)
    center, orientation = from_given(bodies, added("position", position), orientation)
    return Motion(
        position=center,
        orientation=orientation,
        velocity=added("velocity", velocity),
        angular_momentum=momentum_of_rotation(bodies, orientation, spin),
    )


def from_given(bodies: Bodies, position: Vector, orientation: Quaternion) -> tuple[Vector, Quaternion]:
    """Return centers of mass and orientations of bodies from those of the frames in which their shapes were given.

    Args:
        bodies: constants of the bodies.
        position: of the frames in m.
        orientation: rotation from the frames to the world frame.
    """
    if bodies.compound is None:
        return position, orientation
    given = bodies.compound.given
    orientation = multiply(orientation, conjugate(given.orientation))
    return position - rotate(orientation, given.place), orientation


def to_given(bodies: Bodies, position: Vector, orientation: Quaternion) -> tuple[Vector, Quaternion]:
    """Return positions and orientations of the frames in which shapes were given, the inverse of `from_given`."""
    if bodies.compound is None:
        return position, orientation
    given = bodies.compound.given
    return position + rotate(orientation, given.place), multiply(orientation, given.orientation)


def vectors_of(name: str, value: Places, shape: tuple[int, ...]) -> Vector:
    """Return vectors of arrays from vectors of lists, or from rows of three numbers.

    Args:
        name: what they are, for the error.
        value: vectors, or numbers of shape (3,) or (n, 3).
        shape: of the masses of the bodies.

    Raises:
        UserError: if it is neither one vector nor one for each body.
    """
    parts = (value.x, value.y, value.z) if isinstance(value, Vector) else value
    return Vector(*_components(name, value, parts, 3, shape))


def rotations_of(value: Quaternion | Rows, like: jax.Array) -> Quaternion:
    """Return unit quaternions, one for each body, from quaternions or rows of four numbers (w, x, y, z).

    Args:
        value: unit quaternions, or numbers of shape (4,) or (n, 4).
        like: masses of the bodies, whose shape and precision the result has.

    Raises:
        UserError: if it is neither one quaternion nor one for each body.
    """
    parts = (value.w, value.v.x, value.v.y, value.v.z) if isinstance(value, Quaternion) else value
    w, *rest = (part + jnp.zeros_like(like) for part in _components("orientation", value, parts, 4, like.shape))
    return on_sphere(Quaternion(w, Vector(*rest)))


def _components(name: str, value: Any, parts: Any, count: int, shape: tuple[int, ...]) -> list[jax.Array]:
    """Return the components of vectors as arrays: of ``parts``, a tuple of arrays, or rows of ``count`` numbers."""
    try:
        rows = parts if isinstance(parts, tuple) else jnp.moveaxis(jnp.asarray(parts), -1, 0)
        arrays = [jnp.asarray(part, float) for part in rows]
        if len(arrays) == count and {np.broadcast_shapes(part.shape, shape) for part in arrays} == {shape}:
            return arrays
    except (TypeError, ValueError):
        pass
    bodies = "one body" if shape in ((), (1,)) else f"{shape[0]} bodies"
    words = {3: "three", 4: "four"}[count]
    raise UserError(
        f"{name} of {bodies} is {one_line(value, 80)}; give {words} numbers for all, or {words} for each body"
    )


def momentum_of_rotation(bodies: Bodies, orientation: Quaternion, angular_velocity: Vector) -> Vector:
    """Return the angular momentum ``L = R I R^T omega`` about the center of mass.

    Args:
        bodies: with their principal moments I.
        orientation: R.
        angular_velocity: omega in the world frame, in rad/s.
    """
    return rotate(orientation, times(bodies.inertia, unrotate(orientation, angular_velocity)))


def angular_velocity(motion: Motion, bodies: Bodies) -> Vector:
    """Return the angular velocity ``omega = R I^-1 R^T L`` in the world frame, in rad/s.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
    """
    in_body, moments = unrotate(motion.orientation, motion.angular_momentum), bodies.inertia
    return rotate(motion.orientation, Vector(in_body.x / moments.x, in_body.y / moments.y, in_body.z / moments.z))


def kinetic_energy(motion: Motion, bodies: Bodies) -> jax.Array:
    """Return ``sum m v^2 / 2 + L . omega / 2`` in J.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
    """
    translational = bodies.mass * dot(motion.velocity, motion.velocity)
    rotational = dot(motion.angular_momentum, angular_velocity(motion, bodies))
    return jnp.sum(translational + rotational, axis=0) / 2


def momentum(motion: Motion, bodies: Bodies) -> Vector:
    """Return the total momentum ``sum m v`` in kg m/s.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
    """
    return total(bodies.mass * motion.velocity)


def angular_momentum(motion: Motion, bodies: Bodies) -> Vector:
    """Return the total angular momentum about the origin, ``sum x x m v + L``, in kg m^2/s.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
    """
    return total(cross(motion.position, bodies.mass * motion.velocity) + motion.angular_momentum)
