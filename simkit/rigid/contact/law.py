"""Contact law at one point (no penetration, Coulomb friction), and mobility, the change of velocities per impulse."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.tensor import SymmetricTensor, rotated
from simkit.rigid.algebra.vector import Vector, cross, dot, shortened
from simkit.rigid.bodies.bodies import Bodies, unless_held, where_held
from simkit.rigid.bodies.motion import Motion, angular_velocity


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
    return unless_held(bodies, Mobility(linear=1 / bodies.mass, angular=rotated(inverse, motion.orientation)))


def velocities_of(motion: Motion, bodies: Bodies, mobility: Mobility) -> Velocities:
    """Return the velocities of bodies.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        mobility: of the bodies in their present orientation.
    """
    angular = mobility.angular @ motion.angular_momentum
    if any(bodies.held):
        angular = where_held(bodies, angular_velocity(motion, bodies), angular)
    return Velocities(linear=motion.velocity, angular=angular)


@pytree
class Touch:
    """Potential contact points, and the response of their velocities to impulses; arrays of one common shape.

    Attributes:
        normal: unit vector n from the second body to the first.
        first_arm: from the first body's center of mass to the point, in m.
        second_arm: from the second body's, in m; unused where the second is fixed.
        response: change of the slip velocity by a unit impulse along n, the part of K n along the surface, in 1/kg.
        normal_mass: 1 / (n . K n) in kg.
        slip_mass: step of the friction iteration, the inverse of an estimated eigenvalue of K along the surface, in kg.
        gap: of the surfaces in m, negative where they overlap.
        friction: coefficient.
        restitution: coefficient.
        rest_speed: speed of approach in m/s below which the two bodies rest instead of having an impact.
        gain: of the squared speed of approach by the loads while the gap closes, in m^2/s^2.
    """

    normal: Vector
    first_arm: Vector
    second_arm: Vector
    response: Vector
    normal_mass: jax.Array
    slip_mass: jax.Array
    gap: jax.Array
    friction: jax.Array
    restitution: jax.Array
    rest_speed: jax.Array
    gain: jax.Array


@pytree
class Push:
    """Impulse of a contact by components.

    Attributes:
        along: component along the normal, 0 or more, in N s.
        friction: component along the surface, in N s.
    """

    along: jax.Array
    friction: Vector


def masses(mobility: SymmetricTensor, normal: Vector) -> tuple[Vector, jax.Array, jax.Array]:
    """Return ``K n``, ``1 / (n . K n)`` and the effective mass of the friction iteration.

    Friction must oppose slip, so the iteration scales both directions along the surface by one number. With the
    eigenvalues a, b of K along the surface, that is the inverse of ``(a^2 + b^2) / (a + b)``: exact for a = b, without
    a root, and below the larger eigenvalue by at most a factor 1.21, while the iteration converges up to a factor 2.

    Args:
        mobility: K, the sum over both bodies.
        normal: n.
    """
    response = staged(mobility @ normal)
    along = dot(normal, response)
    d, o = mobility.diagonal, mobility.rest
    trace = d.x + d.y + d.z - along
    squares = dot(d, d) + 2 * dot(o, o) - 2 * dot(response, response) + along * along
    return response, 1 / along, trace / squares


@pytree
class Rest:
    """Constants of a contact point that its resting impulses need; arrays as in `Touch`.

    Attributes:
        least: smallest allowed normal velocity in m/s.
    """

    normal: Vector
    first_arm: Vector
    second_arm: Vector
    response: Vector
    normal_mass: jax.Array
    slip_mass: jax.Array
    friction: jax.Array
    least: jax.Array


def rest_of(touch: Touch, correction: float, time_step: jax.Array) -> Rest:
    """Return the contacts as the resting sweeps need them: a gap may close in a step, an overlap opens by a fraction.

    Args:
        touch: the contacts.
        correction: fraction of an overlap removed per step, above that of an approach at `rest_speed` in one step.
        time_step: in s.
    """
    removed = correction * jnp.maximum(-touch.gap - touch.rest_speed * time_step, 0)
    return Rest(
        normal=touch.normal,
        first_arm=touch.first_arm,
        second_arm=touch.second_arm,
        response=touch.response,
        normal_mass=touch.normal_mass,
        slip_mass=touch.slip_mass,
        friction=touch.friction,
        least=computed_once((removed - jnp.maximum(touch.gap, 0)) / time_step),
    )


def resting(velocity: Vector, push: Push, rest: Rest) -> tuple[Vector, Push]:
    """Return the change of the impulse of a contact by one more iteration, in N s, and the impulse after it.

    ``N' = max(0, N + (u - v.n) / (n.K n))``, then the friction that would end the slip, shortened to ``mu N'`` where it
    is longer.

    Args:
        velocity: v, of the first body relative to the second at the point, after all impulses so far.
        push: impulses so far.
        rest: the contact; u is its ``least``.
    """
    # The barriers keep the loops of the three components of friction from repeating the slip and its components.
    speed = computed_once(dot(velocity, rest.normal))
    along = computed_once(jnp.maximum(push.along + (rest.least - speed) * rest.normal_mass, 0))
    more = along - push.along
    slip = velocity - speed * rest.normal + more * rest.response
    sticking = computed_once(push.friction - rest.slip_mass * slip)
    friction = shortened(sticking, rest.friction * along)
    return more * rest.normal + (friction - push.friction), Push(along=along, friction=friction)
