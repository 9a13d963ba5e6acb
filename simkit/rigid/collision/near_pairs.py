"""Near pairs of many bodies: found by cells, kept while nothing moved far, colored in rounds without a shared body.

All pairs of a few hundred bodies are cheaper than a search, and keep the tournament; of thousands, a list grows with
their number and all pairs with its square.
"""

import dataclasses
import functools
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import Buffer
from simkit.core.formulation import by_device
from simkit.core.pytrees import pytree
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import Quaternion, axes_of
from simkit.rigid.algebra.quaternion import stacked as components
from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.bodies.bodies import Bodies, enclosing_radius
from simkit.rigid.bodies.motion import Motion, angular_velocity

# Bodies from which pairs are found by cells.
FROM = 64
# Kinds whose half lengths and radius are those of a rounded box; others are near where their enclosing spheres are.
BOXED = ("capsule", "box")
# Kinds whose contacts are found from a list; in scenes with others all pairs are visited.
LISTED = ("sphere", "disk", *BOXED)
# Rounds at the start; a list that needs more grows.
ROUNDS = 16
# Pairs of enclosing spheres, and candidates in a run of cells, beside shapes that are no spheres, in units of those of
# spheres: cubes side by side have 13 neighbors whose enclosing spheres overlap, and 3 that they touch.
COARSE, LONGER = 6, 4
# Distance from each body, relative to the mean radius of spheres, up to which it is not expected to come in a step, and
# its pairs are listed: a wider list is found again less often, and has more pairs in every sweep.
SKIN = 0.075
# The same for other shapes, whose pairs have four points; those that move are listed as far as they come in some steps.
SKIN_LONG, AHEAD = 0.01, 1.0
# Ratio of the mean margin to that of a new list from which a list of bodies that came to rest is built anew.
SHRINKS = 2.0
# Attempts to color a pair. Each picks one of the colors that are free at both bodies; most pairs keep the first.
ATTEMPTS = 10


def rounds_at_start(kinds: tuple[str, ...], rounds: int | None = None) -> int:
    """Return the rounds of a first list of near pairs; 0 where all pairs are visited: the one place that decides.

    Args:
        kinds: of the bodies.
        rounds: as given by the user; None for the default, by which all pairs of less than `FROM` bodies are visited.

    Raises:
        UserError: if rounds are given for shapes of which all pairs are visited.
    """
    others = sorted(set(kinds) - set(LISTED))
    if others and rounds:
        listed = ", ".join(LISTED)
        raise UserError(
            f"rounds = {rounds} has no effect on a scene with a {others[0]}, in which all pairs are visited; leave it "
            f"out, or take {listed} alone"
        )
    if len(kinds) < 2 or others:
        return 0
    if rounds is not None:
        return rounds
    return ROUNDS if len(kinds) >= FROM else 0


@pytree
class Hulls:
    """Boxes rounded by a radius around bodies, see `simkit.rigid.bodies.bodies.Bodies`, (n,).

    Attributes:
        position: of the centers in m.
        orientation: rotation from the body frame to the world frame; None if all are spheres.
        half_lengths: of the boxes in m.
        radius: in m.
        reach: of the spheres that enclose them, in m.
    """

    position: Vector
    orientation: Quaternion | None
    half_lengths: Vector
    radius: jax.Array
    reach: jax.Array

    @property
    def count(self) -> int:
        """Number of bodies."""
        return self.radius.shape[-1]


def hulls(bodies: Bodies, motion: Motion) -> Hulls:
    """Return the hulls of bodies at their places; without derivative.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
    """
    reach = enclosing_radius(bodies)
    is_boxed = np.isin(bodies.kinds, BOXED)
    half = each(lambda values: jnp.where(is_boxed, values, 0), bodies.half_lengths)
    orientation = motion.orientation if is_boxed.any() else None
    return jax.lax.stop_gradient(
        Hulls(
            position=motion.position,
            orientation=orientation,
            half_lengths=half,
            radius=jnp.where(is_boxed, bodies.radius, reach),
            reach=reach,
        )
    )


@pytree
class NearPairs(Buffer):
    """Pairs of bodies that may touch, in rounds in which no body has two partners.

    Attributes:
        first: index of the first body of each pair, int32, (rounds, pairs per round); in unused entries an index of
            n or more that no other entry has.
        second: index of the second body, likewise, larger than the first.
        reference: positions in m at which the list was built, (n,).
        turned: orientations at which it was built, (n,); None for spheres.
        margin: distance in m from each hull, (n,); every pair closer than the sum of both is listed.
        needed: int32, largest number of rounds needed since the start; above the capacity, pairs are missing.
        builds: int32, number of times the list was built.
        impulses: of the pairs in the last step, any tree of arrays (rounds, slots, pairs per round); None where a list
            has none yet.
    """

    first: jax.Array
    second: jax.Array
    reference: Vector
    turned: Quaternion | None
    margin: jax.Array
    needed: jax.Array
    builds: jax.Array
    impulses: Any = None

    @property
    def capacity(self) -> int:
        """Number of rounds."""
        return self.first.shape[-2]

    @property
    def are_real(self) -> jax.Array:
        """Return which entries are used, (rounds, pairs per round) bool."""
        return self.first < self.reference.x.shape[-1]

    def resized(self, capacity: int) -> Self:
        """Return the same pairs with further, empty rounds.

        Args:
            capacity: the new number of rounds.
        """
        *members, rounds, pairs = self.first.shape
        unused = _unused(self.reference.x.shape[-1], pairs)
        first, second = (
            jnp.concatenate([side, jnp.broadcast_to(fill, (*members, capacity - rounds, pairs))], axis=-2)
            for side, fill in zip((self.first, self.second), unused, strict=True)
        )
        empty = [(0, 0)] * len(members) + [(0, capacity - rounds), (0, 0), (0, 0)]
        impulses = jax.tree.map(lambda values: jnp.pad(values, empty), self.impulses)
        return dataclasses.replace(self, first=first, second=second, impulses=impulses)


def pairs_per_round(count: int) -> int:
    """Return the capacity of a round for a number of bodies.

    A heap of spheres has 2 to 3 near pairs a body, which 16 rounds of a sixth hold; 16 more are four standard
    deviations of the random number in a round of 16.

    Args:
        count: number of bodies.
    """
    return min(count // 2, count // 6 + 16)


@functools.partial(jax.jit, static_argnums=2)
def build(shapes: Hulls, margin: jax.Array, rounds: int) -> NearPairs:
    """Return the pairs of hulls that may be closer than the sum of their margins; without derivative.

    Args:
        shapes: the hulls.
        margin: in m, (n,).
        rounds: capacity.
    """
    return _build(*jax.lax.stop_gradient((shapes, margin)), rounds)


def first_list(bodies: Bodies, motion: Motion, rounds: int) -> NearPairs:
    """Return the list of bodies that do not move yet.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
        rounds: capacity.
    """
    shapes = hulls(bodies, motion)
    return build(shapes, _margin(shapes, jnp.zeros_like(shapes.reach)), rounds)


def _margin(shapes: Hulls, needed: jax.Array) -> jax.Array:
    """Return the margins of a new list, (n,), from the distances needed in a step."""
    if shapes.orientation is None:
        return needed + SKIN * jnp.mean(shapes.reach)
    return (1 + AHEAD) * needed + SKIN_LONG * jnp.mean(shapes.reach)


def refreshed(near: NearPairs, bodies: Bodies, motion: Motion, time: jax.Array | float) -> tuple[NearPairs, jax.Array]:
    """Return a list of every near pair, without impulses, and where each of its pairs was in the old list.

    A pair that is not listed was at least the sum of both margins apart. The list is built anew where the displacement
    of the surface of a body since then, and what it needs now, exceed its margin.

    Args:
        near: the list of the step before.
        bodies: the n bodies.
        motion: state of the bodies.
        time: in s, within which every pair that may meet must be listed.

    Returns:
        The list, and the flat index of each of its entries in the old list, (rounds, pairs per round) int32; one past
        the last for a new pair.
    """
    near = jax.lax.stop_gradient(dataclasses.replace(near, impulses=None))
    bodies, motion, time = jax.lax.stop_gradient((bodies, motion, time))
    shapes = hulls(bodies, motion)
    needed, moved = time * norm(motion.velocity), norm(shapes.position - near.reference)
    if shapes.orientation is not None and near.turned is not None:
        lever = norm(shapes.half_lengths)
        needed += time * norm(angular_velocity(motion, bodies)) * lever
        # A chord of the rotation, 2 sin(angle / 2), is at most twice the distance of the quaternions.
        moved += 2 * jnp.linalg.norm(components(shapes.orientation) - components(near.turned), axis=-1) * lever
    margin = _margin(shapes, needed)
    # Negated, so that the list is stale at NaN positions.
    stale = ~jnp.all(moved + needed <= near.margin) | (jnp.mean(near.margin) > SHRINKS * jnp.mean(margin))
    rounds, pairs = near.first.shape

    def keep(near: NearPairs, *_: Any) -> tuple[NearPairs, jax.Array]:
        return near, jnp.arange(rounds * pairs, dtype=jnp.int32).reshape(rounds, pairs)

    def rebuild(near: NearPairs, shapes: Hulls, margin: jax.Array) -> tuple:
        fresh = _build(shapes, margin, rounds)
        fresh = dataclasses.replace(fresh, needed=jnp.maximum(fresh.needed, near.needed), builds=near.builds + 1)
        return fresh, _origin(fresh, near)

    def selected(stale: jax.Array, *arguments: Any) -> tuple[NearPairs, jax.Array]:
        return jax.tree.map(lambda new, old: jnp.where(stale, new, old), rebuild(*arguments), keep(*arguments))

    return by_device(
        *(stale, near, shapes, margin),
        cpu=lambda stale, *arguments: jax.lax.cond(stale, rebuild, keep, *arguments),
        accelerator=selected,
    )


def _build(shapes: Hulls, margin: jax.Array, rounds: int) -> NearPairs:
    count = shapes.count
    pairs = pairs_per_round(count)
    first, second, total, longest, room = _edges(shapes, margin, rounds, rounds * pairs)
    color, most = _colors(first, second, count, rounds)
    edge = jnp.arange(rounds * pairs, dtype=jnp.int32)
    ordered, edge = jax.lax.sort((color, edge), num_keys=1)
    start = _smaller(ordered, jnp.arange(rounds + 1, dtype=jnp.int32))
    length = start[1:] - start[:-1]
    rank = jnp.arange(pairs, dtype=jnp.int32)
    place = jnp.minimum(start[:-1, None] + rank, rounds * pairs - 1)
    used, edge = rank < length[:, None], edge.at[place].get(mode="promise_in_bounds")
    first, second = (
        jnp.where(used, side.at[edge].get(mode="promise_in_bounds"), fill)
        for side, fill in zip((first, second), _unused(count, pairs), strict=True)
    )
    fits = (start[-1] == jnp.minimum(total, rounds * pairs)) & (jnp.max(length) <= pairs)
    # One and a half times the most pairs of a body are colored in a few attempts.
    more = jnp.maximum(rounds + 1, (3 * most + 1) // 2)
    needed = jnp.maximum(jnp.where(fits, 0, more), jnp.maximum(longest, room))
    needed = jnp.maximum(needed, jnp.where(total > rounds * pairs, 1 + total // pairs, 0))
    return NearPairs(
        first=first,
        second=second,
        reference=shapes.position,
        turned=shapes.orientation,
        margin=margin,
        needed=needed.astype(jnp.int32),
        builds=jnp.int32(1),
    )


def _smaller(values: jax.Array, bounds: jax.Array) -> jax.Array:
    """Return how many of some values in ascending order are below each of some bounds, int32, by bisection."""
    size = values.shape[0]
    steps = size.bit_length()

    def step(turn: jax.Array, number: jax.Array) -> jax.Array:
        more = number + (1 << (steps - 1 - turn))
        last = values.at[jnp.minimum(more, size) - 1].get(mode="promise_in_bounds")
        return jnp.where((more <= size) & (last < bounds), more, number)

    return jax.lax.fori_loop(0, steps, step, jnp.zeros(bounds.shape, jnp.int32))


def _unused(count: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of both sides of the unused entries of a round."""
    fill = count + np.arange(2 * pairs, dtype=np.int32)
    return fill[:pairs], fill[pairs:]


# Bits of a word.
BITS = 32
# Cells per side of the grid; bodies beyond are in its outermost cells.
SIDE_BITS = 10


def _edges(
    shapes: Hulls, margin: jax.Array, rounds: int, capacity: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the near pairs, (capacity,) each side, their number, and the rounds that runs and coarse pairs need."""
    if shapes.orientation is None:
        first, second, total, longest = _of_spheres(shapes, margin, rounds, capacity)
        return first, second, total, longest, jnp.zeros_like(longest)
    coarse = COARSE * capacity
    first, second, total, longest = _of_spheres(shapes, margin, LONGER * rounds, coarse)
    kept = (first < shapes.count) & ~_apart(shapes, margin, first, second)
    place = jnp.cumsum(kept, dtype=jnp.int32)
    place = jnp.where(kept, place - 1, capacity)
    full = jnp.full(capacity, shapes.count, jnp.int32)
    first, second = (full.at[place].set(side, mode="drop", unique_indices=True) for side in (first, second))
    room = jnp.where(total > coarse, 1 + total // (coarse // rounds), 0)
    return first, second, jnp.sum(kept, dtype=jnp.int32), -(-longest // LONGER), room


def _apart(shapes: Hulls, margin: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return which pairs of hulls are farther apart than both margins along a normal of a face of one, bool."""
    assert shapes.orientation is not None  # of spheres
    packed = jnp.stack(
        jax.tree.leaves((shapes.position, shapes.half_lengths, axes_of(shapes.orientation), shapes.radius + margin)),
        axis=-1,
    )
    a, b = (list(packed.at[side].get(mode="clip").T) for side in (first, second))
    halves, axes = [side[3:6] for side in (a, b)], [[Vector(*side[n : n + 3]) for n in (6, 9, 12)] for side in (a, b)]
    cosine = [[jnp.abs(dot(one, other)) for other in axes[1]] for one in axes[0]]
    between, reach = Vector(*a[:3]) - Vector(*b[:3]), a[15] + b[15]
    gaps = [
        jnp.abs(dot(between, axes[0][i])) - halves[0][i] - sum(halves[1][j] * cosine[i][j] for j in range(3))
        for i in range(3)
    ] + [
        jnp.abs(dot(between, axes[1][j])) - halves[1][j] - sum(halves[0][i] * cosine[i][j] for i in range(3))
        for j in range(3)
    ]
    return functools.reduce(jnp.maximum, gaps) > reach


def _of_spheres(
    shapes: Hulls, margin: jax.Array, longest: int, capacity: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the pairs of near enclosing spheres in an arbitrary order, their number, and the longest run needed.

    Bodies are sorted by their cell, along z last, so that the candidates of a body are five runs of the sorted order:
    the rest of its own cell with the next along z, and three cells along z in half of the rows around.
    """
    position, count = shapes.position, shapes.count
    radius = shapes.reach + margin
    width = 2 * jnp.max(radius)
    center = each(jnp.mean, position)
    last = 2**SIDE_BITS - 2

    def cells(place: jax.Array, middle: jax.Array) -> jax.Array:
        return jnp.clip(jnp.floor((place - middle) / width) + last // 2, 1, last).astype(jnp.int32)

    x, y, z = (cells(getattr(position, axis), getattr(center, axis)) for axis in "xyz")
    key = (x << (2 * SIDE_BITS)) + (y << SIDE_BITS) + z
    key, order = jax.lax.sort((key, jnp.arange(count, dtype=jnp.int32)), num_keys=1)
    rows = jnp.stack([position.x, position.y, position.z, radius], axis=1).at[order].get(mode="promise_in_bounds")

    slot = jnp.arange(count, dtype=jnp.int32)
    offsets = [((dx << (2 * SIDE_BITS)) + (dy << SIDE_BITS)) for dx, dy in ((0, 1), (1, -1), (1, 0), (1, 1))]
    sought = jnp.stack([key + 2, *(key + offset + end for offset in offsets for end in (-1, 2))])
    found = _smaller(key, sought)
    begin, end = jnp.stack([slot + 1, *found[1::2]]), found[::2]
    length = end - begin

    # Which candidates of a run are near, as bits: (runs * words, n).
    words = -(-longest // BITS)

    def tested(word: int) -> jax.Array:
        rank = word * BITS + jnp.arange(min(BITS, longest - word * BITS), dtype=jnp.int32)[:, None]
        other = jnp.minimum(begin[:, None] + rank, count - 1)
        others = rows.at[other].get(mode="promise_in_bounds")
        apart = [rows[:, axis] - others[..., axis] for axis in range(3)]
        reach = rows[:, 3] + others[..., 3]
        is_near = (rank < length[:, None]) & (sum(d * d for d in apart) < reach * reach)
        return jnp.sum(is_near.astype(jnp.uint32) << (rank % BITS).astype(jnp.uint32), axis=1, dtype=jnp.uint32)

    near = jnp.concatenate([tested(word) for word in range(words)])
    begin = jnp.concatenate([begin + BITS * word for word in range(words)])
    # The pairs of each slot follow one another; the k-th is the k-th bit of its words.
    found = jnp.cumsum(jax.lax.population_count(near).astype(jnp.int32), axis=0, dtype=jnp.int32)
    ends = jnp.cumsum(found[-1], dtype=jnp.int32)
    entry, total = jnp.arange(capacity, dtype=jnp.int32), ends[-1]
    one = jnp.cumsum(jnp.zeros(capacity, jnp.int32).at[ends].add(1, mode="drop"), dtype=jnp.int32)
    one = jnp.minimum(one, count - 1)
    rank = entry - (ends - found[-1]).at[one].get(mode="promise_in_bounds")
    rows_found = found.at[:, one].get(mode="promise_in_bounds")
    word = jnp.minimum(jnp.sum(rows_found <= rank, axis=0, dtype=jnp.int32), near.shape[0] - 1)
    bits, start, counted = (table.at[word, one].get(mode="promise_in_bounds") for table in (near, begin, found))
    rank = rank - (counted - jax.lax.population_count(bits).astype(jnp.int32))
    other = jnp.clip(start + _place_of_bit(bits, rank), 0, count - 1)
    a, b = (order.at[side].get(mode="promise_in_bounds") for side in (one, other))
    used = entry < total
    first, second = jnp.where(used, jnp.minimum(a, b), count), jnp.where(used, jnp.maximum(a, b), count)
    return first, second, total, jnp.max(length)


def _colors(first: jax.Array, second: jax.Array, count: int, colors: int) -> tuple[jax.Array, jax.Array]:
    """Return a color of each pair that no other pair of its bodies has, ``colors`` without one; the most of a body.

    In each attempt every pair without a color picks one of those free at both bodies, at random by its own number, and
    keeps it if no pair before it picked the same at either body. So all colors have about equally many pairs.

    Args:
        first: body of each pair, (pairs,); ``count`` where there is none.
        second: likewise.
        count: number of bodies.
        colors: number of colors.
    """
    pairs, words = first.shape[0], -(-colors // BITS)
    number = jnp.arange(pairs, dtype=jnp.int32)
    # Bits of colors that do not exist are taken from the start.
    taken = [jnp.uint32(0xFFFFFFFF << min(colors - BITS * word, BITS) & 0xFFFFFFFF) for word in range(words)]

    def attempt(carry: tuple[jax.Array, jax.Array], turn: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        color, taken = carry
        free = ~(taken.at[:, first].get(mode="promise_in_bounds") | taken.at[:, second].get(mode="promise_in_bounds"))
        room = jax.lax.population_count(free)
        rooms = jnp.sum(room, axis=0)
        random = _mixed(number.astype(jnp.uint32) + turn * jnp.uint32(pairs))
        choice = random % jnp.maximum(rooms, 1)
        pick, before = jnp.zeros(pairs, jnp.int32), jnp.zeros_like(choice)
        for word in range(words):
            here = (choice >= before) & (choice < before + room[word])
            pick = jnp.where(here, BITS * word + _place_of_bit(free[word], choice - before), pick)
            before = before + room[word]
        tries = (color == colors) & (first < count) & (rooms > 0)
        claim = jnp.where(tries, number, pairs)
        least = jnp.full((count + 1) * colors, pairs, jnp.int32)
        places = [side * colors + pick for side in (first, second)]
        for place in places:
            least = least.at[place].min(claim, mode="promise_in_bounds")
        kept = tries
        for place in places:
            kept = kept & (least.at[place].get(mode="promise_in_bounds") == number)
        bit = jnp.where(kept, jnp.uint32(1) << (pick % BITS).astype(jnp.uint32), 0)
        bit = jnp.where(pick // BITS == jnp.arange(words, dtype=jnp.int32)[:, None], bit, 0)
        for side in (first, second):
            taken = taken.at[:, side].add(bit, mode="promise_in_bounds")
        return (jnp.where(kept, pick, color), taken), None

    start = jnp.full(pairs, colors, jnp.int32), jnp.broadcast_to(jnp.stack(taken)[:, None], (words, count + 1))
    color, _ = jax.lax.scan(attempt, start, jnp.arange(ATTEMPTS, dtype=jnp.uint32))[0]
    ones = jnp.ones(pairs, jnp.int32)
    degree = jnp.zeros(count + 1, jnp.int32).at[first].add(ones).at[second].add(ones)
    return color, jnp.max(degree[:count])


def _mixed(number: jax.Array) -> jax.Array:
    """Return numbers that look random, uint32: the finalizer of MurmurHash3."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        number = (number ^ (number >> shift)) * jnp.uint32(factor)
    return number ^ (number >> 16)


def _place_of_bit(word: jax.Array, rank: jax.Array) -> jax.Array:
    """Return the place of the bit of a word before which ``rank`` others are set, int32, by bisection."""
    place = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        below = jax.lax.population_count((word >> place) & jnp.uint32((1 << width) - 1))
        is_above = rank >= below
        rank, place = jnp.where(is_above, rank - below, rank), jnp.where(is_above, place + width, place)
    return place.astype(jnp.int32)


def _origin(near: NearPairs, old: NearPairs) -> jax.Array:
    """Return the flat index in the old list of each pair of a new one, one past the last where it was not listed."""
    rounds, pairs = near.first.shape
    count = near.reference.x.shape[0]
    # The partner of each body in each round of the old list, and its place there.
    flat = jnp.arange(rounds * pairs, dtype=jnp.int32).reshape(rounds, pairs)
    turn = jnp.arange(rounds, dtype=jnp.int32)[:, None]
    partner = jnp.full((count + 2 * pairs, rounds), -1, jnp.int32)
    partner = partner.at[old.first, turn].set(old.second, mode="promise_in_bounds", unique_indices=True)
    place = jnp.zeros((count + 2 * pairs, rounds), jnp.int32)
    place = place.at[old.first, turn].set(flat, mode="promise_in_bounds", unique_indices=True)
    same = partner.at[near.first].get(mode="promise_in_bounds") == near.second[..., None]
    found = jnp.max(jnp.where(same, place.at[near.first].get(mode="promise_in_bounds"), -1), axis=-1)
    return jnp.where((found >= 0) & near.are_real, found, rounds * pairs)
