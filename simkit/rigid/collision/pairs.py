"""Narrow phase of collision detection: contact points of all pairs and with all planes; overlaps at a start."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import multiply, rotate
from simkit.rigid.algebra.vector import each, zeros
from simkit.rigid.bodies.bodies import Bodies, thickness
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision import against_plane
from simkit.rigid.collision.boxes import box_box
from simkit.rigid.collision.capsules import capsule_box, capsule_capsule
from simkit.rigid.collision.convex import convex_convex
from simkit.rigid.collision.near_pairs import NearPairs, first_list, rounds_at_start
from simkit.rigid.collision.points import FAR, Placed, Points, in_slots
from simkit.rigid.collision.spheres import sphere_box, sphere_capsule, sphere_sphere, up
from simkit.rigid.collision.tournament import rounds
from simkit.rigid.scene import Planes
from simkit.rigid.shapes.form import Form

# Rank of each kind; kinds of one rank have the same shape.
SHAPES = {"sphere": 0, "disk": 0, "capsule": 1, "box": 2}
# Of an ellipsoid, and of any other convex shape.
ELLIPSOID, CONVEX = 3, 4
# Pairs of the default method.
DEFAULT = (CONVEX, CONVEX)
# Contact function of each pair of ranks, the lower first, and its number of points; that of other convex shapes is the
# default, `simkit.rigid.collision.convex.convex_convex`.
TOUCHES: dict[tuple[int, int], tuple[Callable[[Placed, Placed], Points], int]] = {
    (0, 0): (sphere_sphere, 1),
    (0, 1): (sphere_capsule, 1),
    (0, 2): (sphere_box, 1),
    (1, 1): (capsule_capsule, 2),
    (1, 2): (capsule_box, 2),
    (2, 2): (box_box, 4),
}


def _ranks_of(kinds: Sequence[str]) -> np.ndarray:
    return np.array([ELLIPSOID if kind == "ellipsoid" else SHAPES.get(kind, CONVEX) for kind in kinds])


def placed(bodies: Bodies, motion: Motion) -> Placed:
    """Return the shapes of bodies at their positions and orientations."""
    return Placed(
        position=motion.position,
        orientation=motion.orientation,
        half_lengths=bodies.half_lengths,
        radius=bodies.radius,
    )


@dataclasses.dataclass(frozen=True)
class Shapes:
    """All shapes of bodies at their places; those of single bodies first.

    Attributes:
        placed: arrays (shapes, ...).
        kinds: of each shape.
        forms: of each shape.
        body: index of the body of each; None where every body has one, in their order.
    """

    placed: Placed
    kinds: tuple[str, ...]
    forms: tuple[Form, ...]
    body: np.ndarray | None


def shapes_of(bodies: Bodies, motion: Motion) -> Shapes:
    """Return all shapes of bodies at their places.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
    """
    whole = placed(bodies, motion)
    if bodies.compound is None:
        return Shapes(whole, bodies.kinds, bodies.forms, None)
    single = [index for index, shapes in enumerate(bodies.composition) if not shapes]
    groups = [_rows(whole, np.array(single, int))]
    kinds, forms = [bodies.kinds[index] for index in single], [bodies.forms[index] for index in single]
    for number, shape in enumerate(bodies.compound.shapes):
        of = [index for index, shapes in enumerate(bodies.composition) if len(shapes) > number]
        base, shape = _rows((whole, shape), np.array(of, int))
        groups.append(
            Placed(
                position=base.position + rotate(base.orientation, shape.frame.place),
                orientation=multiply(base.orientation, shape.frame.orientation),
                half_lengths=shape.half_lengths,
                radius=shape.radius,
            )
        )
        kinds += [bodies.composition[index][number][0] for index in of]
        forms += [bodies.composition[index][number][1] for index in of]
    return Shapes(computed_once(_concatenated(groups, axis=0)), tuple(kinds), tuple(forms), owners(bodies.composition))


def owners(composition: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return the index of the body of each shape, in the order of `shapes_of`.

    Args:
        composition: shapes of each body, none for a body of one shape.
    """
    single = [index for index, shapes in enumerate(composition) if not shapes]
    most = max(map(len, composition), default=0)
    return np.array(
        single + [index for number in range(most) for index, shapes in enumerate(composition) if len(shapes) > number]
    )


def contacts(bodies: Bodies, motion: Motion, near: NearPairs | None = None) -> Points:
    """Return the contact points of all pairs, in the order of `simkit.rigid.collision.tournament.rounds`.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
        near: pairs to take instead of all.

    Returns:
        Points (slots, rounds * pairs per round, ...), with as many slots as any pair needs; the gap is `FAR` in unused
        slots, and for a body without a partner.

    Example:
        >>> stack = rigid.repeat(rigid.sphere(1.0, 0.5), 2)
        >>> points = rigid.contacts(stack, rigid.motion_of(stack, [[0.0, 0.0, 0.5], [0.0, 0.0, 1.6]]))
        >>> print(f"{points.gap.min():.2f} m between the balls")
        0.10 m between the balls
    """
    if near is not None:
        return _contacts_of(near, bodies, motion)
    first, second = (side.ravel() for side in rounds(len(bodies.kinds)))
    held = np.append(bodies.held, False)
    # Held bodies do not touch each other.
    real = (np.maximum(first, second) < len(bodies.kinds)) & ~(held[first] & held[second])
    shapes, pair = shapes_of(bodies, motion), np.arange(first.size)
    if shapes.body is not None:
        pair, first, second = _pairs_of_shapes(shapes.body, first, second, real)
        real = np.ones(pair.size, bool)
    ranks = _ranks_of(shapes.kinds)
    lower, upper = np.minimum(*_ranks(ranks, first, second)), np.maximum(*_ranks(ranks, first, second))
    # Two flat sides may meet on a patch; a shape without any touches at one point.
    flat = (upper == CONVEX) & ~np.isin(lower, (0, ELLIPSOID))
    # All pairs of the default are computed together, so that it is compiled once.
    lower, upper = (np.where(upper >= ELLIPSOID, CONVEX, rank) for rank in (lower, upper))
    used = [both for both in (*TOUCHES, DEFAULT) if np.any(real & (lower == both[0]) & (upper == both[1]))]

    all_shapes = shapes.placed
    results, order = [], []
    for both in used:
        pairs = np.flatnonzero(real & (lower == both[0]) & (upper == both[1]))
        swapped = ranks[first[pairs]] > ranks[second[pairs]]
        a = np.where(swapped, second[pairs], first[pairs])
        b = np.where(swapped, first[pairs], second[pairs])
        sides = _rows(all_shapes, a), _rows(all_shapes, b)
        if both in TOUCHES:
            points = TOUCHES[both][0](*sides)
        else:
            forms = tuple(tuple(shapes.forms[index] for index in side) for side in (a.tolist(), b.tolist()))
            points = convex_convex(*sides, (forms[0], forms[1]), flat[pairs])
        results.append(_with_normals_reversed(points, swapped))
        order.append(pairs)
    if shapes.body is not None:
        number = len(rounds(len(bodies.kinds))[0].ravel())
        return _side_by_side(results, [pair[pairs] for pairs in order], number, all_shapes.radius)
    slots = max((points.gap.shape[0] for points in results), default=1)
    results = [_padded(points, slots) for points in results]
    if not real.all():
        results.append(_unused(all_shapes.radius, slots, int(np.sum(~real))))
        order.append(np.flatnonzero(~real))
    return _in_order(_concatenated(results, axis=1), np.argsort(np.concatenate(order)))


def _pairs_of_shapes(
    body: np.ndarray, first: np.ndarray, second: np.ndarray, real: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of the pair of bodies, the first and the second shape of each pair of shapes."""
    rows = [
        (number, one, other)
        for number in np.flatnonzero(real)
        for one in np.flatnonzero(body == first[number])
        for other in np.flatnonzero(body == second[number])
    ]
    number, one, other = np.array(rows, int).reshape(-1, 3).T
    return number, one, other


def _side_by_side(results: Sequence[Points], targets: Sequence[np.ndarray], count: int, like: jax.Array) -> Points:
    """Return the points of all shapes of a pair, or of a body with a plane, in slots one after another.

    Args:
        results: points of groups of shapes, (slots, entries, ...).
        targets: the pair, or the body with its plane, of each entry of a group.
        count: number of targets.
        like: an array (n, ...) of the precision of the points, with their further axes.
    """
    places: list[list[int]] = [[] for _ in range(count)]
    start = 0
    for points, target in zip(results, targets, strict=True):
        slots, entries = points.gap.shape[:2]
        for entry, place in enumerate(target.tolist()):
            places[place] += [start + slot * entries + entry for slot in range(slots)]
        start += slots * entries
    most = max(1, *map(len, places))
    table = np.array([each + [start] * (most - len(each)) for each in places], int).T
    flat = [each(lambda values: values.reshape(-1, *values.shape[2:]), in_slots(points)) for points in results]
    unused = each(lambda values: values[0], _unused(like, 1, 1))
    leaves, structure = jax.tree.flatten(_concatenated([*flat, unused], axis=0))
    # One array and one gather, and none fused with the contact functions, which would be compiled for each again.
    taken = computed_once(jnp.take(computed_once(jnp.stack(leaves)), table, axis=1, mode="clip"))
    return jax.tree.unflatten(structure, list(taken))


# Pairs of one kind of shapes whose contact points are computed at once.
BLOCK = 64


def _contacts_of(near: NearPairs, bodies: Bodies, motion: Motion) -> Points:
    first, second = near.first.ravel(), near.second.ravel()
    real, ranks = near.are_real.ravel(), np.array([SHAPES[kind] for kind in bodies.kinds])
    if any(bodies.held):
        held = jnp.asarray(bodies.held)
        # Held bodies do not touch each other; indices of unused entries are clipped.
        real &= ~(held.at[first].get(mode="clip") & held.at[second].get(mode="clip"))
    present = sorted(set(ranks.tolist()))
    kinds = [(low, high) for low in present for high in present if low <= high]
    slots = max(TOUCHES[shapes][1] for shapes in kinds)
    packed, structure = jax.tree.flatten(placed(bodies, motion))
    rows = computed_once(jnp.stack(packed, axis=-1))

    def points_of(shapes: tuple[int, int], rows: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        one, other = (jax.tree.unflatten(structure, list(rows.at[side].get(mode="clip").T)) for side in (a, b))
        points = _padded(in_slots(TOUCHES[shapes][0](one, other)), slots)
        return jnp.stack(jax.tree.leaves(points))

    one, other, swapped = first, second, jnp.zeros_like(real)
    of_pair = jnp.zeros(first.shape, jnp.int32)
    if len(present) > 1:
        rank = jnp.asarray(ranks)
        ahead, behind = (rank.at[side].get(mode="clip") for side in (first, second))
        swapped = ahead > behind
        one, other = jnp.where(swapped, second, first), jnp.where(swapped, first, second)
        table = np.zeros((max(present) + 1,) * 2, np.int32)
        for number, shapes in enumerate(kinds):
            table[shapes] = table[shapes[::-1]] = number
        of_pair = jnp.asarray(table)[ahead, behind]

    def all_of_each(rows: jax.Array, one: jax.Array, other: jax.Array, of_pair: jax.Array, _: jax.Array) -> jax.Array:
        values = [points_of(shapes, rows, one, other) for shapes in kinds]
        return functools.reduce(
            lambda sofar, number: jnp.where(of_pair == number, values[number], sofar), range(1, len(kinds)), values[0]
        )

    def in_blocks(rows: jax.Array, one: jax.Array, other: jax.Array, of_pair: jax.Array, real: jax.Array) -> jax.Array:
        # Blocks of one kind each, so that only its function is evaluated, and none for unused entries.
        is_of = (of_pair == np.arange(len(kinds), dtype=np.int32)[:, None]) & real
        rank = jnp.cumsum(is_of, axis=1, dtype=jnp.int32)
        blocks = -(-rank[:, -1] // BLOCK)
        ends, most = jnp.cumsum(blocks, dtype=jnp.int32), -(-real.size // BLOCK) + len(kinds) - 1
        place = jnp.sum(jnp.where(is_of, (ends - blocks)[:, None] * BLOCK + rank - 1, 0), axis=0, dtype=jnp.int32)
        place = jnp.where(real, place, most * BLOCK)
        entry = jnp.zeros(most * BLOCK, jnp.int32).at[place].set(jnp.arange(real.size, dtype=jnp.int32), mode="drop")
        kind = jnp.sum(jnp.arange(most, dtype=jnp.int32)[:, None] >= ends, axis=1, dtype=jnp.int32)
        sides = (side.at[entry].get(mode="promise_in_bounds").reshape(most, BLOCK) for side in (one, other))
        nothing = jnp.stack(jax.tree.leaves(_unused(rows[0, 0], slots, BLOCK)))
        cases = [functools.partial(points_of, shapes) for shapes in kinds] + [lambda *_: nothing]

        def block(_: None, block: tuple[jax.Array, ...]) -> tuple[None, jax.Array]:
            return None, jax.lax.switch(block[0], cases, rows, *block[1:])

        # (blocks, 7, slots, pairs per block)
        values = computed_once(jax.lax.scan(block, None, (kind, *sides))[1])
        flat = jnp.moveaxis(values, (0, 3), (0, 1)).reshape(most * BLOCK, *values.shape[1:3])
        return jnp.moveaxis(flat.at[place].get(mode="clip"), 0, -1)

    values = by_device(rows, one, other, of_pair, real, cpu=in_blocks, accelerator=all_of_each)
    points = jax.tree.unflatten(jax.tree.structure(_unused(rows[0, 0], 1, 1)), list(values))
    points = dataclasses.replace(points, gap=jnp.where(real, points.gap, FAR))
    if len(present) == 1:
        return points
    return dataclasses.replace(points, normal=each(lambda values: jnp.where(swapped, -values, values), points.normal))


def plane_contacts(bodies: Bodies, motion: Motion, planes: Planes) -> Points:
    """Return the contact points of all bodies with all planes.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
        planes: the fixed planes, possibly none.

    Returns:
        Points (slots, planes * n, ...): all bodies with the first plane, then all with the second, and so on, with as
        many slots as any body needs; the gap is `FAR` in unused slots.
    """
    shapes, count, number = shapes_of(bodies, motion), len(bodies.kinds), planes.offset.shape[0]
    slots, all_shapes = max(against_plane.slots_of(kind) for kind in shapes.kinds), shapes.placed
    if number == 0:
        return _unused(all_shapes.radius, slots, 0)
    groups, order = [], []
    kinds = np.array(["sphere" if kind == "disk" else kind for kind in shapes.kinds])
    owner = np.arange(count) if shapes.body is None else shapes.body
    for kind in dict.fromkeys(kinds.tolist()):
        group = np.flatnonzero(kinds == kind)
        body, plane = np.tile(group, number), np.repeat(np.arange(number), group.size)
        # A single plane broadcasts.
        normal, offset = _rows((planes.normal, planes.offset), plane if number > 1 else plane[:1])
        forms = tuple(shapes.forms[index] for index in body.tolist())
        points = against_plane.against_plane(kind, _rows(all_shapes, body), normal, offset, forms)
        groups.append(points)
        order.append(plane * count + owner[body])
    if shapes.body is None:
        groups = [_padded(points, slots) for points in groups]
        points = _in_order(_concatenated(groups, axis=1), np.argsort(np.concatenate(order)))
    else:
        points = _side_by_side(groups, order, number * count, all_shapes.radius)
    if not any(bodies.held):
        return points
    free = ~np.tile(np.array(bodies.held), number).reshape(-1, *(1,) * (points.gap.ndim - 2))
    return dataclasses.replace(points, gap=jnp.where(free, points.gap, FAR))


def _ranks(ranks: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of both bodies of each pair; 0 for the index n of a missing partner."""
    padded = np.append(ranks, 0)
    return padded[first], padded[second]


def _rows[T](tree: T, index: np.ndarray) -> T:
    return each(lambda array: _take(array, index, 0), tree)


def _in_order(points: Points, index: np.ndarray) -> Points:
    return each(lambda array: _take(array, index, 1), points)


def _take(array: jax.Array, index: np.ndarray, axis: int) -> jax.Array:
    if np.array_equal(index, np.arange(array.shape[axis])):
        return array
    return jnp.take(array, index, axis=axis, mode="clip")


def _concatenated[T](results: Sequence[T], axis: int) -> T:
    return results[0] if len(results) == 1 else each(lambda *arrays: jnp.concatenate(arrays, axis), *results)


def _with_normals_reversed(points: Points, swapped: np.ndarray) -> Points:
    """Return points with the normals reversed for the pairs whose bodies were swapped."""
    if not swapped.any():
        return points
    sign = np.where(swapped, -1, 1).reshape(1, -1, *(1,) * (points.gap.ndim - 2)).astype(points.gap.dtype)
    return dataclasses.replace(points, normal=sign * points.normal)


def _padded(points: Points, slots: int) -> Points:
    """Return points padded with unused slots to a number of slots."""
    missing = slots - points.gap.shape[0]
    if missing == 0:
        return points
    return _concatenated([points, _unused(points.gap[0], missing, points.gap.shape[1])], axis=0)


def _unused(like: jax.Array, slots: int, pairs: int) -> Points:
    """Return unused points, with gap `FAR`, (slots, pairs, ...) with the further axes of ``like``."""
    zero = jnp.zeros((slots, pairs, *like.shape[1:]), like.dtype)
    return Points(position=zeros(zero), normal=up(zero), gap=zero + FAR)


# Allowed overlap at the start, relative to the size of the smaller body.
TOUCHING = 1e-3


def check_apart(
    bodies: Bodies,
    motion: Motion,
    planes: Planes,
    allowed: float = TOUCHING,
    joined: Collection[frozenset[int | None]] = (),
) -> None:
    """Refuse bodies that overlap each other or a plane; on the host.

    Args:
        bodies: of the scene.
        motion: state at the start.
        planes: the fixed planes.
        allowed: overlap that counts as touching, relative to their size (radius, or least half length of a box).
        joined: pairs of bodies that do not touch each other.

    Raises:
        UserError: naming the two that overlap most.
    """
    count = len(bodies.kinds)
    sizes = np.append(np.asarray(thickness(bodies)) / 2, np.inf)
    on_planes = np.asarray(_least_gaps(bodies, motion, planes))
    room = rounds_at_start(bodies.kinds)
    near = first_list(bodies, motion, room) if room else None
    while True:
        sides = rounds(count) if near is None else (near.first, near.second)
        first, second = (np.minimum(np.asarray(side), count).ravel() for side in sides)
        pairs = np.asarray(_least_gaps_of_pairs(bodies, motion, near))
        margin = pairs + allowed * np.minimum(sizes[first], sizes[second])
        if joined:
            margin[[frozenset(pair) in joined for pair in zip(first.tolist(), second.tolist(), strict=True)]] = np.inf
        # More pairs than the list holds matter only where none of those in it overlaps.
        if near is None or not near.overflowed or margin.min() < 0:
            break
        near = first_list(bodies, motion, near.enlarged().capacity)
    if margin.min() < 0:
        worst = margin.argmin()
        i, j = sorted((int(first[worst]), int(second[worst])))
        names = f"bodies {i} ({bodies.kinds[i]}) and {j} ({bodies.kinds[j]})"
        raise UserError(f"{names} overlap by {-pairs[worst]:.3g} m at the start; move them apart")
    margin = on_planes + allowed * np.tile(sizes[:count], planes.offset.shape[0])
    if margin.size and margin.min() < 0:
        worst = int(margin.argmin())
        name = f"body {worst % count} ({bodies.kinds[worst % count]}) and plane {worst // count}"
        raise UserError(f"{name} overlap by {-on_planes[worst]:.3g} m at the start; move them apart")


@jax.jit
def _least_gaps(bodies: Bodies, motion: Motion, planes: Planes) -> jax.Array:
    return jnp.min(plane_contacts(bodies, motion, planes).gap, axis=0)


@jax.jit
def _least_gaps_of_pairs(bodies: Bodies, motion: Motion, near: NearPairs | None) -> jax.Array:
    return jnp.min(contacts(bodies, motion, near).gap, axis=0)
