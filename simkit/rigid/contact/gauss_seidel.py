"""Gauss-Seidel sweeps over all contacts: planes first, then pairs round by round."""

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


def sweep(
    velocities: Velocities,
    mobility: Mobility,
    touches: Touches,
    carried: Touches,
    visit: Visit,
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
    """

    def one_plane(sides: Sides, contact: Any) -> tuple[Sides, Any]:
        return visit(sides, (mobility,), *contact)

    (velocities,), planes = jax.lax.scan(one_plane, (velocities,), (touches.planes, carried.planes))
    if touches.pairs is None:
        return velocities, Touches(planes=planes, pairs=None)

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


def applied(velocities: Velocities, mobility: Mobility, touches: Touches, impulses: Touches) -> Velocities:
    """Return the velocities after given impulses at all contacts.

    Args:
        velocities: of the bodies.
        mobility: of the bodies.
        touches: the contacts, trees of `Touch`.
        impulses: in N s on the first bodies, trees of `Vector` in the same arrangement.
    """
    # Moments of the impulses about the centers of mass are summed over slots on whole arrays; what is left for the
    # rounds is the addition of six components, without sequence.
    impulse, arm = impulses.planes, touches.planes.first_arm
    total = each(lambda values: jnp.sum(values, axis=(0, 1)), (impulse, cross(arm, impulse)))
    if touches.pairs is not None:
        total = each(jnp.add, total, _of_pairs(touches.pairs, impulses.pairs, velocities.linear.x.shape[0]))
    linear, angular = total
    return velocities + Velocities(linear=mobility.linear * linear, angular=mobility.angular @ angular)


def _of_pairs(touch: Touch, impulse: Vector, count: int) -> tuple[Vector, Vector]:
    """Return the sums of the impulses of pairs on each body, and of their moments."""

    def summed(values: jax.Array) -> jax.Array:
        return functools.reduce(operator.add, (values[:, slot] for slot in range(values.shape[1])))

    linear = each(summed, impulse)
    sides = [(linear, each(summed, cross(touch.first_arm, impulse)))]
    sides.append((-linear, -each(summed, cross(touch.second_arm, impulse))))
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
