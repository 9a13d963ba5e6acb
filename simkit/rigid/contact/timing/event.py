"""One event of balls (impact, end of slipping, lift-off): its time, its impulse, and the motion after it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, normalize, select, shortened, zeros
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.contact.timing.candidates import GRIP, LIFT, PAIR, PLANE, Candidates, index_axis, pick
from simkit.rigid.contact.timing.resting import ROUNDINGS, Balls, Footing, slip
from simkit.rigid.scene import Planes


def impact_impulse(
    velocity: Vector,
    normal: Vector,
    inverse_mass: jax.Array,
    mobility: jax.Array,
    restitution: jax.Array,
    friction: jax.Array,
) -> tuple[jax.Array, Vector]:
    """Return the impulse on the first body, ``N`` along the normal and ``J`` of friction.

    With the speed of approach w = -u.n and the slip s = u + w n the normal impulse is ``N = (1 + e) w / (1/m)``.
    Friction ends the slip if that takes no more than mu N, ``J = -s / k``; otherwise ``J = -mu N s/|s|``. For balls
    this is Coulomb's law throughout the impact, not only at its end: the slip keeps its direction and only decreases.

    Args:
        velocity: u, of the first body's surface relative to the second's at the point of contact, in m/s.
        normal: n, unit vector from the second body to the first.
        inverse_mass: 1/m, the sum of both bodies' 1/mass in 1/kg.
        mobility: k, slip per tangential impulse in 1/kg: the sum of both bodies' 1/mass + radius^2 / moment of inertia.
        restitution: e, 0 to 1.
        friction: mu, not negative.

    Returns:
        N and J in N s: zero if the bodies do not approach. Their derivatives are finite at zero slip, friction and
        approach.
    """
    along = dot(velocity, normal)
    impulse = (1 + restitution) * jnp.maximum(-along, 0) / inverse_mass
    slip = velocity - along * normal
    return impulse, friction_impulse(slip, mobility, friction * impulse)


def friction_impulse(slip: Vector, mobility: jax.Array, limit: jax.Array) -> Vector:
    """Return the friction impulse, ``-s / k`` where that is within its limit and ``-limit s/|s|`` elsewhere.

    Args:
        slip: s in m/s, along the surface.
        mobility: k in 1/kg.
        limit: mu N in N s.
    """
    return shortened(-slip / mobility, limit)


@pytree
class Event:
    """An event of one ball, or of two.

    Attributes:
        kind: PAIR, PLANE, GRIP or LIFT; -1 for no event.
        first: mask of the ball concerned, (n,) booleans.
        second: mask of the other ball of a pair, (n,) booleans.
        plane: index of the plane that a ball meets, -1 for none.
    """

    kind: jax.Array
    first: jax.Array
    second: jax.Array
    plane: jax.Array

    @property
    def is_impact(self) -> jax.Array:
        """Whether it is an impact."""
        return (self.kind == PAIR) | (self.kind == PLANE)

    @property
    def struck(self) -> jax.Array:
        """Mask of all balls concerned, (n,) booleans."""
        return self.first | self.second

    def difference(self, vectors: Vector) -> Vector:
        """Return the vector of the first ball minus that of the second, or that of a single ball."""
        return pick(self.struck, select(self.first, vectors, -vectors))


def event_of(rows: Candidates, index: jax.Array, applies: jax.Array, balls: Balls) -> Event:
    """Return one of the candidates as an event.

    Args:
        rows: the candidates.
        index: index of the candidate.
        applies: whether there is an event, bool.
        balls: constants of the balls.
    """
    columns = np.stack([rows.kind, rows.first, rows.second, rows.plane])
    kind, first, second, plane = jnp.where(applies, jnp.take(columns, index, axis=1, mode="clip"), -1)
    ball = index_axis(balls.radius.shape[0], balls.radius)
    return Event(kind=kind, first=ball == first, second=ball == second, plane=plane)


def residual_of(
    event: Event, motion: Motion, pressure: jax.Array, balls: Balls, planes: Planes, stand: Footing
) -> jax.Array:
    """Return the quantity that is zero at an event: gap (impact), slip velocity (grip) or contact pressure (lift-off).

    Args:
        event: the event.
        motion: motion at its time.
        pressure: contact force of resting balls at its time, in N.
        balls: constants of the balls.
        planes: the planes.
        stand: contacts of resting balls.
    """
    normal, offset = pick(_plane_of(event, planes), (planes.normal, planes.offset))
    apart, reach = event.difference(motion.position), pick(event.struck, balls.radius)
    of_impact = jnp.where(event.kind == PAIR, norm(apart), dot(apart, normal) - offset) - reach
    slipping = dot(slip(motion.velocity, motion.angular_momentum, balls, stand.normal), stand.direction)
    of_rest = pick(event.first, jnp.where(event.kind == GRIP, slipping, pressure))
    return jnp.where(event.is_impact, of_impact, of_rest)


def after_event(
    event: Event,
    motion: Motion,
    acceleration: Vector,
    balls: Balls,
    planes: Planes,
    support: jax.Array,
    stand: Footing,
    least_flight: jax.Array,
) -> tuple[Motion, jax.Array, jax.Array]:
    """Return the motion after an event, the index of the plane that each ball rests on, and the contacts that roll.

    A ball that would leave the plane for less than ``least_flight`` stays there: its impact has no restitution. With a
    restitution of 1 it always bounces.

    Args:
        event: the event.
        motion: motion at its time.
        acceleration: acceleration of the balls just before the event.
        balls: constants of the balls.
        planes: the planes.
        support: index of the plane that each ball rests on, -1 for none.
        stand: contacts of resting balls.
        least_flight: longest flight that is replaced by rest, in s.
    """
    first, second, meets = event.first, event.second, _plane_of(event, planes)
    is_impact = event.is_impact
    apart = event.difference(motion.position)
    up = dataclasses.replace(zeros(apart.x), z=jnp.ones_like(apart.x))
    normal = select(event.kind == PAIR, normalize(apart, up), pick(meets, planes.normal))

    # The surfaces meet at x - r n of the first ball and at x + r n of the second.
    surface = motion.angular_momentum * balls.lever
    # Without the barrier, programs that fuse this with other code would round it differently.
    normal, velocity = computed_once(
        (normal, event.difference(motion.velocity) - cross(pick(event.struck, surface), normal))
    )
    inverse_mass, slips = (
        jnp.where(is_impact, pick(event.struck, each), 1) for each in (balls.inverse_mass, balls.mobility)
    )
    restitution, friction = (
        jnp.maximum(jnp.maximum(pick(first, of_body), pick(second, of_body)), pick(meets, of_plane))
        for of_body, of_plane in ((balls.restitution, planes.restitution), (balls.friction, planes.friction))
    )
    approach, pressing = -dot(velocity, normal), -dot(pick(first, acceleration), normal)
    stays = (event.kind == PLANE) & (pick(first, support + 1) == 0) & (pressing > 0)
    stays = stays & (2 * restitution * approach <= least_flight * pressing)
    # Bounces of restitution 1 never end, and replacing them by rest would remove their energy. A ball whose approach is
    # rounding rests on the plane.
    speed = pick(first, norm(motion.velocity))
    rounding = ROUNDINGS * jnp.finfo(approach.dtype).eps
    stays = stays & ((restitution < 1) | (approach <= rounding * speed))
    impulse, along = computed_once(
        impact_impulse(velocity, normal, inverse_mass, slips, jnp.where(stays, 0, restitution), friction)
    )
    impulse, along = jnp.where(is_impact, impulse, 0), select(is_impact, along, zeros(impulse))

    share = jnp.where(first, balls.inverse_mass, 0) - jnp.where(second, balls.inverse_mass, 0)
    arm = jnp.where(event.struck, balls.radius, 0)
    after = dataclasses.replace(
        motion,
        velocity=motion.velocity + share * (impulse * normal + along),
        angular_momentum=motion.angular_momentum - arm * cross(normal, along),
    )

    hit = is_impact & event.struck
    rising = jnp.abs(dot(after.velocity, stand.normal))
    leaves = hit & (rising > ROUNDINGS * jnp.finfo(rising.dtype).eps * norm(after.velocity))
    support = jnp.where(leaves | (first & (event.kind == LIFT)), -1, support)
    support = jnp.where(first & stays, event.plane, support)
    return after, support, (stand.rolls & ~hit) | (first & (event.kind == GRIP))


def _plane_of(event: Event, planes: Planes) -> jax.Array:
    return index_axis(planes.offset.shape[0], planes.offset) == event.plane
