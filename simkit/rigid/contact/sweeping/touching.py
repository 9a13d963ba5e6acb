"""Contact law at one point: non-penetration along the normal, and Coulomb friction within its cone."""

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.tensor import SymmetricTensor
from simkit.rigid.algebra.vector import Vector, dot, shortened


@pytree
class Touch:
    """Potential contact points, and the response of their velocities to impulses; arrays of one common shape.

    Attributes:
        normal: unit vector n from the second body to the first.
        first_arm: from the first body's center of mass to the point, in m.
        second_arm: from the second body's, in m; unused where the second is fixed.
        response: K n, change of the relative velocity by a unit impulse along n, in 1/kg.
        normal_mass: 1 / (n . K n) in kg.
        slip_mass: step of the friction iteration, the inverse of an estimated eigenvalue of K along the surface, in kg.
        gap: of the surfaces in m, negative where they overlap.
        friction: coefficient.
        restitution: coefficient.
        rest_speed: speed of approach in m/s below which the two bodies rest instead of having an impact.
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


def resting(velocity: Vector, push: Push, touch: Touch, least: jax.Array) -> Push:
    """Return the impulse of a contact after one more iteration.

    ``N' = max(0, N + (u - v.n) / (n.K n))``, then the friction that would end the slip, shortened to ``mu N'`` where it
    is longer.

    Args:
        velocity: v, of the first body relative to the second at the point, after all impulses so far.
        push: impulses so far.
        touch: the contact.
        least: u, smallest allowed normal velocity, in m/s.
    """
    normal = touch.normal
    speed = dot(velocity, normal)
    along = staged(jnp.maximum(push.along + (least - speed) * touch.normal_mass, 0))
    velocity = velocity + (along - push.along) * touch.response
    slip = staged(velocity - staged(dot(velocity, normal)) * normal)
    friction = shortened(push.friction - touch.slip_mass * slip, touch.friction * along)
    return Push(along=along, friction=friction)
