"""Velocities of bodies, and mobility: their change per impulse at a point."""

import jax

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.tensor import SymmetricTensor, rotated
from simkit.rigid.algebra.vector import Vector, cross
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion


@pytree
class Velocities:
    """Linear and angular velocities of bodies; the first axis of every array counts the bodies.

    Attributes:
        linear: of the center of mass in m/s.
        angular: in the world frame, in rad/s.
    """

    linear: Vector
    angular: Vector

    def __add__(self, other: "Velocities") -> "Velocities":
        return Velocities(linear=self.linear + other.linear, angular=self.angular + other.angular)

    def __sub__(self, other: "Velocities") -> "Velocities":
        return Velocities(linear=self.linear - other.linear, angular=self.angular - other.angular)

    def __truediv__(self, divisor: jax.Array) -> "Velocities":
        return Velocities(linear=self.linear / divisor, angular=self.angular / divisor)

    def at(self, arm: Vector) -> Vector:
        """Return the velocity of a point of the body, ``v + omega x r``.

        Args:
            arm: r, from the center of mass to the point, in m.
        """
        return self.linear + cross(self.angular, arm)


@pytree
class Mobility:
    """Inverse inertia of bodies: velocity per impulse.

    Attributes:
        linear: inverse mass in 1/kg; zero for a body that impulses do not move.
        angular: inverse inertia tensor in the world frame, in 1/(kg m^2).
    """

    linear: jax.Array
    angular: SymmetricTensor

    def change(self, impulse: Vector, arm: Vector) -> Velocities:
        """Return the change of velocities by an impulse at a point, ``dv = P / m``, ``d omega = I^-1 (r x P)``.

        Args:
            impulse: P in N s.
            arm: r in m.
        """
        return Velocities(linear=self.linear * impulse, angular=self.angular @ staged(cross(arm, impulse)))

    def at(self, arm: Vector) -> SymmetricTensor:
        """Return the change of the velocity of a point per impulse there, ``K = 1/m - [r] I^-1 [r]``, in 1/kg.

        Args:
            arm: r in m; ``[r]`` is the matrix of the vector product with it.
        """
        x, y, z = arm.x, arm.y, arm.z
        d, o = self.angular.diagonal, self.angular.rest
        return SymmetricTensor(
            Vector(
                self.linear + d.z * y * y + d.y * z * z - 2 * o.x * y * z,
                self.linear + d.x * z * z + d.z * x * x - 2 * o.y * z * x,
                self.linear + d.y * x * x + d.x * y * y - 2 * o.z * x * y,
            ),
            Vector(
                o.z * z * x + o.y * x * y - o.x * x * x - d.x * y * z,
                o.x * x * y + o.z * y * z - o.y * y * y - d.y * z * x,
                o.y * y * z + o.x * z * x - o.z * z * z - d.z * x * y,
            ),
        )


def mobility_of(bodies: Bodies, motion: Motion) -> Mobility:
    """Return the mobility of bodies in their present orientation.

    Args:
        bodies: constants of the bodies.
        motion: state of the bodies, of which only the orientation is used.
    """
    moments = bodies.inertia
    inverse = Vector(1 / moments.x, 1 / moments.y, 1 / moments.z)
    return Mobility(linear=1 / bodies.mass, angular=rotated(inverse, motion.orientation))
