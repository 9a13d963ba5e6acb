"""Quantities of contacts: normal force, friction and center of pressure; number and time of impacts."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.collision.points import Points
from simkit.rigid.contact.timing.candidates import PAIR
from simkit.rigid.contact.timing.event import Event


@pytree
class ContactForces:
    """Contact points of one kind, of bodies with planes or of pairs of bodies, and the forces there.

    Attributes:
        first: index of the first body of each contact, (contacts,).
        second: index of the second body, or of the plane, (contacts,).
        points: arrays (slots, contacts).
        along: normal force in N, (slots, contacts), not negative.
        friction: on the first body in N, (slots, contacts).
        on_planes: whether the second is a plane; static.
    """

    first: jax.Array
    second: jax.Array
    points: Points
    along: jax.Array
    friction: Vector
    on_planes: bool = dataclasses.field(metadata={"static": True})


@pytree
class Grip:
    """What a body receives from others that it touches.

    Attributes:
        normal: sum of the normal forces in N.
        force: the sum of all forces on the body in N.
        friction: size of the sum of the forces of friction in N.
        center: center of pressure, the mean place of the points weighted by normal forces, in m; NaN without contact.
    """

    normal: jax.Array
    force: Vector
    friction: jax.Array
    center: Vector


def grip_of(groups: tuple[ContactForces, ...], first: int, second: int | None = None, plane: int | None = None) -> Grip:
    """Return what a body receives from another one, from a plane, or from all that it touches.

    Args:
        groups: all contacts.
        first: index of the body.
        second: index of the other body; None for a plane, or for all.
        plane: index of the plane; None for a body, or for all.

    Example:
        >>> pressed = rigid.Scene(
        ...     params={"gravity": 9.81, "time_step": 0.01},
        ...     bodies=rigid.sphere(2.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 0.1)),
        ...     dynamics=rigid.Impulses(impacts=0),
        ...     planes=rigid.floor(),
        ...     loads=(rigid.gravity(),),
        ...     measures_of_contact=lambda contacts: {"weight": rigid.grip_of(contacts, 0, plane=0).force.z},
        ... )
        >>> print(f"{float(simkit.run(rigid.simulate(pressed), steps=20)['weight'][-1]):.2f} N")
        19.62 N
    """
    parts = []
    for group in groups:
        if (plane if second is None else second) is not None and group.on_planes != (plane is not None):
            continue
        wanted = plane if group.on_planes else second
        is_first, is_second = group.first == first, jnp.zeros(group.first.shape, bool)
        if wanted is not None:
            is_first = is_first & (group.second == wanted)
        if not group.on_planes:
            is_second = group.second == first
            is_second = is_second if wanted is None else is_second & (group.first == wanted)
        weight = jnp.where(is_first | is_second, group.along, 0)
        sign = is_first.astype(weight.dtype) - is_second.astype(weight.dtype)
        friction = sign * group.friction
        force = (sign * group.along) * group.points.normal + friction
        parts.append((weight, weight * group.points.position, force, friction))
    zero = jnp.zeros((1, 1), groups[0].along.dtype)
    nothing = (zero, *(Vector(zero, zero, zero),) * 3)
    normal, place, force, friction = (
        functools.reduce(lambda a, b: each(jnp.add, a, b), (each(jnp.sum, part[k]) for part in [*parts, nothing]))
        for k in range(4)
    )
    touches = normal > 0
    return Grip(
        normal=normal,
        force=force,
        friction=norm(friction),
        center=each(lambda value: jnp.where(touches, value / jnp.where(touches, normal, 1), jnp.nan), place),
    )


def split(points: Points, push: Vector) -> tuple[jax.Array, Vector]:
    """Return the normal part of forces at contact points, and their friction."""
    along = dot(push, points.normal)
    return along, push - along * points.normal


def indices(first: np.ndarray, second: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Return indices of the bodies of contacts as arrays."""
    return jnp.asarray(first, jnp.int32), jnp.asarray(second, jnp.int32)


@dataclasses.dataclass(frozen=True)
class Impact:
    """One of the impacts of a body: with another one, on a plane, or with any of them.

    Attributes:
        name: of the diagnostics, ``NAME.impacts``, how many there were so far, and ``NAME.time`` in s.
        first: index of the body.
        second: index of the other body; None for a plane, or for any impact.
        plane: index of the plane; None for a body, or for any impact.
        number: of the impact whose time is wanted, 1 for the first.

    Example:
        >>> rigid.Impact("bounce", first=0, plane=0, number=2).name
        'bounce'
    """

    name: str
    first: int
    second: int | None = None
    plane: int | None = None
    number: int = 1

    def happens(self, event: Event) -> jax.Array:
        """Return whether an event is such an impact, bool."""
        if self.second is not None:
            one, other = self.first, self.second
            both = (event.first[one] & event.second[other]) | (event.first[other] & event.second[one])
            return both & (event.kind == PAIR)
        if self.plane is not None:
            return event.is_impact & event.first[self.first] & (event.plane == self.plane)
        return event.is_impact & (event.first[self.first] | event.second[self.first])
