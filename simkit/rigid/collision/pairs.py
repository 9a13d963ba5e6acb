"""Every pair of a collection of bodies, and every body with every plane."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.vector import each, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision import against_plane
from simkit.rigid.collision.boxes import box_box
from simkit.rigid.collision.capsules import capsule_box, capsule_capsule
from simkit.rigid.collision.points import Placed, Points
from simkit.rigid.collision.rounds import rounds
from simkit.rigid.collision.slots import FAR
from simkit.rigid.collision.spheres import sphere_box, sphere_capsule, sphere_sphere, up
from simkit.rigid.scene import Planes

SHAPES = {"sphere": 0, "disk": 0, "capsule": 1, "box": 2}
# For each two shapes, the lower first: how they touch, and the number of points.
TOUCHES: dict[tuple[int, int], tuple[Callable[[Placed, Placed], Points], int]] = {
    (0, 0): (sphere_sphere, 1),
    (0, 1): (sphere_capsule, 1),
    (0, 2): (sphere_box, 1),
    (1, 1): (capsule_capsule, 2),
    (1, 2): (capsule_box, 2),
    (2, 2): (box_box, 4),
}


def placed(bodies: Bodies, motion: Motion) -> Placed:
    """Return the shapes of bodies where they are."""
    return Placed(
        position=motion.position,
        orientation=motion.orientation,
        half_lengths=bodies.half_lengths,
        radius=bodies.radius,
    )


def contacts(bodies: Bodies, motion: Motion) -> Points:
    """Return where the pairs of a collection may touch, in the order of `simkit.rigid.collision.rounds.rounds`.

    Args:
        bodies: n of them.
        motion: where they are.

    Returns:
        Points (slots, rounds * pairs per round, ...), with as many slots as any pair needs; the gap is `FAR` in slots
        that a pair does not use, and for a body without a partner.
    """
    first, second = (side.ravel() for side in rounds(len(bodies.kinds)))
    ranks = np.array([SHAPES[kind] for kind in bodies.kinds])
    real = np.maximum(first, second) < len(bodies.kinds)
    lower, upper = np.minimum(*_ranks(ranks, first, second)), np.maximum(*_ranks(ranks, first, second))
    used = [shapes for shapes in TOUCHES if np.any(real & (lower == shapes[0]) & (upper == shapes[1]))]
    slots = max((TOUCHES[shapes][1] for shapes in used), default=1)

    everyone = placed(bodies, motion)
    results, order = [], []
    for shapes in used:
        pairs = np.flatnonzero(real & (lower == shapes[0]) & (upper == shapes[1]))
        swapped = ranks[first[pairs]] > ranks[second[pairs]]
        a = np.where(swapped, second[pairs], first[pairs])
        b = np.where(swapped, first[pairs], second[pairs])
        points = TOUCHES[shapes][0](_rows(everyone, a), _rows(everyone, b))
        results.append(_filled(_turned(points, swapped), slots))
        order.append(pairs)
    if not real.all():
        results.append(_nothing(everyone.radius, slots, int(np.sum(~real))))
        order.append(np.flatnonzero(~real))
    return _in_order(_together(results, axis=1), np.argsort(np.concatenate(order)))


def plane_contacts(bodies: Bodies, motion: Motion, planes: Planes) -> Points:
    """Return where each body may touch each plane.

    Args:
        bodies: n of them.
        motion: where they are.
        planes: any number.

    Returns:
        Points (slots, planes * n, ...): all bodies with the first plane, then all with the second, and so on, with as
        many slots as any body needs; the gap is `FAR` in slots that a body does not use.
    """
    ranks = np.array([SHAPES[kind] for kind in bodies.kinds])
    slots = max(against_plane.SLOTS[kind] for kind in bodies.kinds)
    everyone, count, number = placed(bodies, motion), len(bodies.kinds), planes.offset.shape[0]
    if number == 0:
        return _nothing(everyone.radius, slots, 0)
    groups, order = [], []
    for kind, rank in (("sphere", 0), ("capsule", 1), ("box", 2)):
        some = np.flatnonzero(ranks == rank)
        if some.size:
            body, plane = np.tile(some, number), np.repeat(np.arange(number), some.size)
            # A single plane broadcasts.
            normal, offset = _rows((planes.normal, planes.offset), plane if number > 1 else plane[:1])
            groups.append(_filled(against_plane.against_plane(kind, _rows(everyone, body), normal, offset), slots))
            order.append(plane * count + body)
    return _in_order(_together(groups, axis=1), np.argsort(np.concatenate(order)))


def _ranks(ranks: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shapes of the two of each pair; a number past the end has none."""
    known = np.append(ranks, 0)
    return known[first], known[second]


def _rows[T](tree: T, index: np.ndarray) -> T:
    return each(lambda array: _taken(array, index, 0), tree)


def _in_order(points: Points, index: np.ndarray) -> Points:
    return each(lambda array: _taken(array, index, 1), points)


def _taken(array: jax.Array, index: np.ndarray, axis: int) -> jax.Array:
    if np.array_equal(index, np.arange(array.shape[axis])):
        return array
    return jnp.take(array, index, axis=axis, mode="clip")


def _together(results: Sequence[Points], axis: int) -> Points:
    return results[0] if len(results) == 1 else each(lambda *arrays: jnp.concatenate(arrays, axis), *results)


def _turned(points: Points, swapped: np.ndarray) -> Points:
    """Return points with the normals of those pairs turned round that were taken the other way round."""
    if not swapped.any():
        return points
    sign = np.where(swapped, -1, 1).reshape(1, -1, *(1,) * (points.gap.ndim - 2)).astype(points.gap.dtype)
    return dataclasses.replace(points, normal=sign * points.normal)


def _filled(points: Points, slots: int) -> Points:
    """Return points with slots added that are not in use."""
    missing = slots - points.gap.shape[0]
    if missing == 0:
        return points
    return _together([points, _nothing(points.gap[0], missing, points.gap.shape[1])], axis=0)


def _nothing(like: jax.Array, slots: int, pairs: int) -> Points:
    """Return points where nothing touches, in arrays (slots, pairs, ...) with the further axes of ``like``."""
    nothing = jnp.zeros((slots, pairs, *like.shape[1:]), like.dtype)
    return Points(position=zeros(nothing), normal=up(nothing), gap=nothing + FAR)
