"""Gauss-Seidel sweeps over all contacts: planes first, then pairs round by round.

In each round a body has at most one partner, so the pairs of a round are visited at once: all pairs in the rounds of a
tournament, or near pairs in rounds of one color.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once, is_for_accelerators
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector, cross, each
from simkit.rigid.collision.near_pairs import NearPairs
from simkit.rigid.collision.tournament import join_pairs, next_round, rounds, split_pairs, sums_of_bodies
from simkit.rigid.contact.law import Mobility, Rest, Touch, Velocities

# Velocities and mobilities of one body (which touches a plane) or of the two bodies of a pair.
type Sides = tuple[Velocities, ...]
type Mobilities = tuple[Mobility, ...]
type Visit = Callable[[Sides, Mobilities, Touch, Any], tuple[Sides, Any]]
type Respond = Callable[[Vector, Any, Rest], tuple[Vector, Any]]


@pytree
class Touches:
    """One pytree of arrays for contacts with planes and one for contacts of pairs.

    Attributes:
        planes: of bodies with planes, (planes, slots, bodies, ...).
        pairs: of pairs of bodies, (rounds, slots, pairs per round, ...); None for a single body.
    """

    planes: Any
    pairs: Any


@pytree
class Partners:
    """Near pairs and the mobilities of their bodies, gathered once for all sweeps.

    Attributes:
        near: the pairs.
        mobilities: of the first and of the second bodies, (rounds, pairs per round).
    """

    near: NearPairs
    mobilities: Mobilities


def partners_of(near: NearPairs | None, mobility: Mobility) -> Partners | None:
    """Return near pairs with the mobilities of their bodies; None where all pairs are visited.

    Args:
        near: the pairs; None for all.
        mobility: of the bodies.
    """
    if near is None:
        return None
    first, second = of_pairs(mobility, near)
    return Partners(near=near, mobilities=each(lambda values: values[:, 0], (first, second)))


def of_pairs[T](tree: T, near: NearPairs | None) -> tuple[T, T]:
    """Return the values of both bodies of each pair, (rounds, 1, pairs per round, ...).

    Args:
        tree: any pytree of arrays (bodies, ...).
        near: the pairs, in whose unused entries both sides are the last body; None for all.
    """
    leaves, structure = jax.tree.flatten(tree)
    if near is None:
        # One array, so that each side is one gather: a gather per component would take as long to compile as all
        # together.
        packed = computed_once(jnp.stack([made_even(values) for values in leaves]))
        sides = (jnp.take(packed, side, axis=1, mode="clip") for side in rounds(leaves[0].shape[0]))
    else:
        # Rows: the memory of a body is read at once.
        packed = computed_once(jnp.stack(leaves, axis=-1))
        sides = (jnp.moveaxis(packed.at[side].get(mode="clip"), -1, 0) for side in (near.first, near.second))
    one, other = (jax.tree.unflatten(structure, list(computed_once(values[:, :, None]))) for values in sides)
    return one, other


def sweep(
    velocities: Velocities,
    mobility: Mobility,
    touches: Touches,
    carried: Touches,
    visit: Visit,
    partners: Partners | None = None,
) -> tuple[Velocities, Touches]:
    """Return velocities after one Gauss-Seidel sweep: one visit of every contact with the latest velocities.

    The pairs of a round share no body, so they are visited at once, on whole arrays; between rounds the order of the
    bodies is shifted (`simkit.rigid.collision.tournament`), so that no gather or scatter is needed.

    Args:
        velocities: of the bodies.
        mobility: of the bodies.
        touches: the contacts, trees of `Touch`.
        carried: data of ``visit`` for each contact, trees in the same arrangement.
        visit: ``(velocities of the sides, their mobilities, touch of all slots, carried) -> (velocities, carried)``.
        partners: the pairs; None for all.
    """

    def one_plane(sides: Sides, contact: Any) -> tuple[Sides, Any]:
        return visit(sides, (mobility,), *contact)

    (velocities,), planes = jax.lax.scan(one_plane, (velocities,), (touches.planes, carried.planes))
    if touches.pairs is None:
        return velocities, Touches(planes=planes, pairs=None)
    if partners is not None:
        velocities, pairs = _near_rounds(velocities, partners, touches.pairs, carried.pairs, visit)
        return velocities, Touches(planes=planes, pairs=pairs)

    count = velocities.linear.x.shape[0]
    padded = each(made_even, (velocities, mobility))
    structure = jax.tree.structure(padded)
    n_velocities = len(jax.tree.leaves(velocities))

    def one_round(packed: jax.Array, contact: Any) -> tuple[jax.Array, Any]:
        faced = jax.vmap(split_pairs)(packed)
        first, second = computed_once([jax.tree.unflatten(structure, list(side)) for side in faced])
        met, after = visit((first[0], second[0]), (first[1], second[1]), *contact)
        met = jax.vmap(join_pairs)(*(jnp.stack(jax.tree.leaves(side)) for side in met))
        return jax.vmap(next_round)(jnp.concatenate([met, packed[n_velocities:]])), after

    # One array for all 13 components, so that the shift between rounds is compiled once.
    packed, pairs = jax.lax.scan(one_round, jnp.stack(jax.tree.leaves(padded)), (touches.pairs, carried.pairs))
    # After the last round the bodies are in their first order again.
    velocities = jax.tree.unflatten(jax.tree.structure(velocities), list(packed[:n_velocities, :count]))
    return velocities, Touches(planes=planes, pairs=pairs)


def _near_rounds(
    velocities: Velocities, partners: Partners, touch: Any, carried: Any, visit: Visit
) -> tuple[Velocities, Any]:
    """Return velocities after visits of all near pairs, round by round, and their data."""
    structure, pairs = jax.tree.structure(velocities), partners.near.first.shape[-1]
    both = jnp.concatenate([partners.near.first, partners.near.second], axis=1)

    def one_round(rows: jax.Array, contact: Any) -> tuple[jax.Array, Any]:
        both, mobilities, touch, carried = contact
        met = computed_once(rows.at[both].get(mode="promise_in_bounds", unique_indices=True)).T
        first, second = (jax.tree.unflatten(structure, list(side)) for side in (met[:6, :pairs], met[:6, pairs:]))
        after, carried = visit((first, second), mobilities, touch, carried)
        after = computed_once(jnp.concatenate([_rows(side, 0) for side in after]))
        return rows.at[both].set(after, mode="promise_in_bounds", unique_indices=True), carried

    # Unused entries have rows of their own, at rest.
    rows, carried = jax.lax.scan(one_round, _rows(velocities, 2 * pairs), (both, partners.mobilities, touch, carried))
    return jax.tree.unflatten(structure, list(rows[: velocities.linear.x.shape[0], :6].T)), carried


def _rows(tree: Any, empty: int) -> jax.Array:
    """Return the six components of bodies as rows of eight, (bodies + empty, 8): one read each, aligned."""
    rows = jnp.stack(jax.tree.leaves(tree), axis=-1)
    return jnp.pad(rows, (*[(0, 0)] * (rows.ndim - 2), (0, empty), (0, 2)))


def applied(
    velocities: Velocities,
    mobility: Mobility,
    touches: Touches,
    impulses: Touches,
    partners: Partners | None = None,
) -> Velocities:
    """Return the velocities after given impulses at all contacts.

    Args:
        velocities: of the bodies.
        mobility: of the bodies.
        touches: the contacts, trees of `Touch`.
        impulses: in N s on the first bodies, trees of `Vector` in the same arrangement.
        partners: the pairs; None for all.
    """
    # Moments of the impulses about the centers of mass are summed over slots on whole arrays; what is left for the
    # rounds is the addition of six components, without sequence.
    impulse, arm = impulses.planes, touches.planes.first_arm
    total = each(lambda values: jnp.sum(values, axis=(0, 1)), (impulse, cross(arm, impulse)))
    if touches.pairs is not None:
        total = each(jnp.add, total, _of_pairs(touches.pairs, impulses.pairs, velocities.linear.x.shape[0], partners))
    linear, angular = total
    return velocities + Velocities(linear=mobility.linear * linear, angular=mobility.angular @ angular)


def _of_pairs(touch: Touch, impulse: Vector, count: int, partners: Partners | None) -> tuple[Vector, Vector]:
    """Return the sums of the impulses of pairs on each body, and of their moments."""

    def summed(values: jax.Array) -> jax.Array:
        return functools.reduce(operator.add, (values[:, slot] for slot in range(values.shape[1])))

    linear = each(summed, impulse)
    sides = [(linear, each(summed, cross(touch.first_arm, impulse)))]
    sides.append((-linear, -each(summed, cross(touch.second_arm, impulse))))
    if partners is not None:
        return _of_near_pairs(sides, partners.near, count)
    # (rounds, 6, pairs per round, ...)
    first, second = computed_once([jnp.stack(jax.tree.leaves(side), axis=1) for side in sides])

    def round_by_round(first: jax.Array, second: jax.Array) -> jax.Array:
        def one_round(total: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return jax.vmap(next_round)(total + jax.vmap(join_pairs)(*pair)), None

        start = jnp.concatenate([jnp.zeros_like(first[0]), jnp.zeros_like(second[0])], axis=1)
        return jax.lax.scan(one_round, start, (first, second))[0]

    def at_once(first: jax.Array, second: jax.Array) -> jax.Array:
        values = jnp.concatenate([first, second], axis=2).swapaxes(1, 2)
        values = values.reshape(-1, *values.shape[2:])
        return sums_of_bodies(values, np.concatenate(rounds(count), axis=1).ravel(), count).swapaxes(0, 1)

    total = by_device(first, second, cpu=round_by_round, accelerator=at_once)
    return jax.tree.unflatten(jax.tree.structure(sides[0]), list(total[:, :count]))


def _of_near_pairs(sides: list[tuple[Vector, Vector]], near: NearPairs, count: int) -> tuple[Vector, Vector]:
    """Return the sums of values of near pairs on each body; one round after another, so that their order is fixed."""
    both = jnp.concatenate([near.first, near.second], axis=1)
    values = computed_once(jnp.concatenate([_rows(side, 0)[..., :6] for side in sides], axis=1))

    def one_round(total: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total.at[pair[0]].add(pair[1], mode="promise_in_bounds", unique_indices=True), None

    start = jnp.zeros((count + both.shape[1], 6), values.dtype)
    total = jax.lax.scan(one_round, start, (both, values))[0]
    return jax.tree.unflatten(jax.tree.structure(sides[0]), list(total[:count].T))


def slot_by_slot(respond: Respond) -> Visit:
    """Return the `Visit` that resolves the points of a pair one after another.

    Args:
        respond: ``(relative velocity at the point, carried, contact) -> (impulse on the first body, carried)``.
    """

    def visit(sides: Sides, mobilities: Mobilities, touch: Touch, carried: Any) -> tuple[Sides, Any]:
        def one_slot(sides: Sides, slot: Any) -> tuple[Sides, Any]:
            touch, carried = slot
            impulse, carried = computed_once(respond(computed_once(relative(sides, touch)), carried, touch))
            return computed_once(pushed(sides, mobilities, touch, impulse)), carried

        return jax.lax.scan(one_slot, sides, (touch, carried), unroll=is_for_accelerators())

    return visit


def relative(sides: Sides, touch: Touch | Rest) -> Vector:
    """Return the velocity of the first body relative to the second, or to a plane, at contact points.

    Args:
        sides: velocities of one or two bodies, (pairs, ...).
        touch: the points, of one slot or of all.
    """
    velocity = sides[0].at(touch.first_arm)
    return velocity if len(sides) == 1 else velocity - sides[1].at(touch.second_arm)


def pushed(sides: Sides, mobilities: Mobilities, touch: Touch | Rest, impulse: Vector) -> Sides:
    """Return the velocities after an impulse at points of one slot on the first body, and its opposite on the second.

    Args:
        sides: velocities of one or two bodies, (pairs, ...).
        mobilities: of these bodies.
        touch: the points.
        impulse: in N s.
    """
    first = sides[0] + mobilities[0].change(impulse, touch.first_arm)
    if len(sides) == 1:
        return (first,)
    return first, sides[1] - mobilities[1].change(impulse, touch.second_arm)


def all_pushed(sides: Sides, mobilities: Mobilities, touch: Touch, impulse: Vector) -> Sides:
    """Return the velocities after impulses in all slots at once, as by `pushed`.

    Args:
        sides: velocities of one or two bodies, (pairs, ...).
        mobilities: of these bodies.
        touch: the points, (slots, pairs, ...).
        impulse: in N s, (slots, pairs, ...).
    """
    zero = each(lambda values: jnp.zeros_like(values)[None], sides)
    changes = pushed(zero, mobilities, touch, impulse)
    return each(lambda before, change: before + over_slots(change), sides, changes)


def over_slots(values: jax.Array) -> jax.Array:
    """Return the sum over the few slots of pairs, term by term, which compiles faster than a reduction.

    Args:
        values: (slots, pairs, ...).
    """
    return functools.reduce(operator.add, (values[slot] for slot in range(values.shape[0])))


def made_even(values: jax.Array) -> jax.Array:
    """Return values of bodies, padded by one row of zeros if their number is odd."""
    # The zero mobility of the padding makes it an immovable partner for the body without one.
    return values if values.shape[0] % 2 == 0 else jnp.concatenate([values, jnp.zeros_like(values[:1])])
