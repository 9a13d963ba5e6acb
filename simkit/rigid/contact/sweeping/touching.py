"""The law of contact at one point: no approach, and friction inside its cone."""

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.tensor import SymmetricTensor
from simkit.rigid.algebra.vector import Vector, dot, shortened


@pytree
class Touch:
    """Points at which bodies may touch, and how the velocity there answers impulses; arrays of any one shape.

    Attributes:
        normal: unit vector n from the second body to the first.
        first_arm: from the first body's center of mass to the point, in m.
        second_arm: from the second body's, in m; unused where the second is fixed.
        answer: K n, change of the relative velocity by a unit impulse along n, in 1/kg.
        normal_mass: 1 / (n . K n) in kg.
        slip_mass: step of the iteration for friction, the inverse of an eigenvalue of K along the surface, in kg.
        gap: of the surfaces in m, negative where they overlap.
        friction: coefficient.
        restitution: coefficient.
        slow: speed of approach in m/s below which the two bodies rest instead of bouncing.
    """

    normal: Vector
    first_arm: Vector
    second_arm: Vector
    answer: Vector
    normal_mass: jax.Array
    slip_mass: jax.Array
    gap: jax.Array
    friction: jax.Array
    restitution: jax.Array
    rest_speed: jax.Array


@pytree
class Push:
    """Impulse of a contact, split.

    Attributes:
        along: along the normal, 0 or more, in N s.
        friction: along the surface, in N s.
    """

    along: jax.Array
    friction: Vector


def masses(mobility: SymmetricTensor, normal: Vector) -> tuple[Vector, jax.Array, jax.Array]:
    """Return ``K n``, ``1 / (n . K n)`` and the mass that friction is iterated with.

    Friction must oppose slip, so its iteration has to scale both directions along the surface alike. With the
    eigenvalues a, b of K there, ``(a^2 + b^2) / (a + b)`` is exact for a = b, needs no root, and is never below the
    larger one by more than a factor 1.21, while the iteration converges up to 2.

    Args:
        mobility: K, the sum of both bodies'.
        normal: n.
    """
    answer = staged(mobility @ normal)
    along = dot(normal, answer)
    d, o = mobility.diagonal, mobility.rest
    trace = d.x + d.y + d.z - along
    squares = dot(d, d) + 2 * dot(o, o) - 2 * dot(answer, answer) + along * along
    return answer, 1 / along, trace / squares


def resting(velocity: Vector, push: Push, touch: Touch, least: jax.Array) -> Push:
    """Return the impulse of a contact after one more iteration.

    ``N' = max(0, N + (u - v.n) / (n.K n))``, then the friction that would end the slip, shortened to ``mu N'`` where it
    is longer.

    Args:
        velocity: v, of the first body relative to the second at the point, after all impulses so far.
        push: impulses so far.
        touch: the contact.
        least: u, velocity along the normal that the contact asks for at least, in m/s.
    """
    normal = touch.normal
    speed = dot(velocity, normal)
    along = staged(jnp.maximum(push.along + (least - speed) * touch.normal_mass, 0))
    velocity = velocity + (along - push.along) * touch.answer
    slip = staged(velocity - staged(dot(velocity, normal)) * normal)
    friction = shortened(push.friction - touch.slip_mass * slip, touch.friction * along)
    return Push(along=along, friction=friction)
