"""Contact rows: contacts of a step in the order and array layout of the Gauss-Seidel sweeps."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot, each, norm, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.near_pairs import NearPairs
from simkit.rigid.collision.pairs import contacts, plane_contacts
from simkit.rigid.collision.points import FAR, Points
from simkit.rigid.collision.tournament import rounds
from simkit.rigid.contact.gauss_seidel import Touches, of_pairs
from simkit.rigid.contact.law import Mobility, Touch, masses
from simkit.rigid.scene import Setting


def touches_of(motion: Motion, setting: Setting, mobility: Mobility, near: NearPairs | None) -> Touches:
    """Return all potential contacts, with the quantities that are constant during the sweeps.

    Args:
        motion: state of the bodies.
        setting: bodies and planes.
        mobility: of the bodies.
        near: pairs that may touch; None for all.
    """
    is_single, zero = len(setting.bodies.kinds) == 1, zeros(motion.position.x)
    pairs = None if is_single else touching_pairs(motion, setting, mobility, zero, near)
    return Touches(planes=touching_planes(motion, setting, mobility, zero), pairs=pairs)


def gaps_of(motion: Motion, setting: Setting, near: NearPairs | None) -> Touches:
    """Return the gaps of all potential contacts in m, in the arrangement of `touches_of`.

    Args:
        motion: state of the bodies.
        setting: bodies and planes.
        near: pairs that may touch; None for all.
    """
    bodies, count = setting.bodies, len(setting.bodies.kinds)
    planes = _split(plane_contacts(bodies, motion, setting.planes).gap, setting.planes.offset.shape[0], count)
    if count == 1:
        return Touches(planes=planes, pairs=None)
    groups, pairs = (rounds(count)[0] if near is None else near.first).shape
    return Touches(planes=planes, pairs=_split(contacts(bodies, motion, near).gap, groups, pairs))


def touching_planes(motion: Motion, setting: Setting, mobility: Mobility, loaded: Vector) -> Touch:
    """Return potential contacts of bodies with planes, (planes, slots, bodies, ...).

    Args:
        motion: state of the bodies.
        setting: bodies and planes.
        mobility: of the bodies.
        loaded: change of velocity (bodies, ...) by the loads, in m/s, below which an approach counts as rest.
    """
    bodies, planes = setting.bodies, setting.planes
    points = computed_once(plane_contacts(bodies, motion, planes))
    points = each(lambda values: _split(values, planes.offset.shape[0], len(bodies.kinds)), points)
    # Constants of a plane broadcast over slots and bodies.
    of_planes = each(lambda values: values[:, None, None], (planes.friction, planes.restitution))
    return _touch(
        points,
        points.position - motion.position,
        zeros(points.gap),
        _responses([(mobility, points.position - motion.position)], points.normal, bodies),
        jnp.maximum(bodies.friction, of_planes[0]),
        jnp.maximum(bodies.restitution, of_planes[1]),
        norm(loaded),
    )


def touching_pairs(
    motion: Motion, setting: Setting, mobility: Mobility, loaded: Vector, near: NearPairs | None
) -> Touch:
    """Return potential contacts of bodies with each other, (rounds, slots, pairs per round, ...).

    Args:
        motion: state of the bodies.
        setting: bodies and planes.
        mobility: of the bodies.
        loaded: as for `touching_planes`.
        near: pairs that may touch; None for all.
    """
    bodies = setting.bodies
    points = computed_once(contacts(bodies, motion, near))
    first, second = of_pairs((motion.position, mobility, bodies.friction, bodies.restitution, loaded), near)
    groups, _, pairs, *_ = first[0].x.shape
    points = each(lambda values: _split(values, groups, pairs), points)
    arms = points.position - first[0], points.position - second[0]
    return _touch(
        points,
        *arms,
        _responses([(first[1], arms[0]), (second[1], arms[1])], points.normal, bodies),
        jnp.maximum(first[2], second[2]),
        jnp.maximum(first[3], second[3]),
        jnp.maximum(jnp.maximum(norm(first[4]), norm(second[4])), norm(first[4] - second[4])),
    )


def apart(touch: Touch, pairs: jax.Array) -> Touch:
    """Return contacts with the gap of some pairs set to `FAR`, so that they do not act.

    Args:
        touch: (rounds, slots, pairs per round, ...).
        pairs: the pairs to exclude, (rounds, pairs per round, ...) bool.
    """
    return dataclasses.replace(touch, gap=jnp.where(pairs[:, None], FAR, touch.gap))


def _touch(
    points: Points,
    first_arm: Vector,
    second_arm: Vector,
    responses: tuple[Vector, jax.Array, jax.Array],
    friction: jax.Array,
    restitution: jax.Array,
    rest_speed: jax.Array,
) -> Touch:
    response, normal_mass, slip_mass = computed_once(responses)
    zero = jnp.zeros_like(points.gap)
    return Touch(
        normal=points.normal,
        first_arm=first_arm,
        second_arm=second_arm,
        response=response,
        normal_mass=normal_mass,
        slip_mass=slip_mass,
        gap=points.gap,
        friction=friction + zero,
        restitution=restitution + zero,
        rest_speed=rest_speed + zero,
        gain=zero,
    )


def _responses(
    sides: Sequence[tuple[Mobility, Vector]], normal: Vector, bodies: Bodies
) -> tuple[Vector, jax.Array, jax.Array]:
    """Return the part of ``K n`` along the surface, and the effective masses along the normal and the surface."""
    linear = sum(mobility.linear for mobility, _ in sides)
    # Contacts of two held bodies never act; the identity in place of their K keeps them finite.
    still = (linear == 0) & any(bodies.held)
    if all(kind in ("sphere", "disk") for kind in bodies.kinds):
        # The centers lie on the normal, so K has one eigenvalue along it and one across; a disk turns about y.
        along = (jnp.where(still, 1, linear) if any(bodies.held) else linear) + jnp.zeros_like(normal.x)
        across = along + sum(mobility.angular.diagonal.y * dot(arm, arm) for mobility, arm in sides)
        return zeros(along), 1 / along, 1 / across
    tensors = [mobility.at(arm) for mobility, arm in sides]
    tensor = computed_once(functools.reduce(lambda a, b: each(jnp.add, a, b), tensors))
    if any(bodies.held):
        tensor = dataclasses.replace(tensor, diagonal=each(lambda a: jnp.where(still, 1, a), tensor.diagonal))
    response, normal_mass, slip_mass = masses(tensor, normal)
    return response - staged(dot(response, normal)) * normal, normal_mass, slip_mass


def _split(values: jax.Array, groups: int, each_group: int) -> jax.Array:
    """Return (slots, groups * n, ...) as (groups, slots, n, ...)."""
    values = values.reshape(values.shape[0], groups, each_group, *values.shape[2:])
    return jnp.moveaxis(values, 0, 1)
