"""Gauss-Seidel sweeps over all contacts: planes first, then pairs round by round."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.vector import Vector, computed_once, each
from simkit.rigid.collision.rounds import halves, joined, moved_on
from simkit.rigid.contact.sweeping.mobility import Mobility, Velocities
from simkit.rigid.contact.sweeping.touching import Touch

type Respond = Callable[[Vector, Touch, Any], tuple[Vector, Any]]


@pytree
class Touches:
    """Everything that may touch.

    Attributes:
        planes: bodies with planes, (planes, slots, bodies, ...).
        pairs: pairs of bodies, (rounds, slots, pairs per round, ...); None for a single body.
    """

    planes: Any
    pairs: Any


def sweep(
    velocities: Velocities, mobility: Mobility, touches: Touches, carried: Touches, respond: Respond
) -> tuple[Velocities, Touches]:
    """Return velocities after one visit of every contact, in which each sees what those before it have changed.

    The pairs of a round share no body, so they are visited at once, on whole arrays; between rounds the bodies move on
    by one place (`simkit.rigid.collision.rounds`), so that nothing is gathered or scattered.

    Args:
        velocities: of the bodies.
        mobility: how they yield.
        touches: the contacts, as trees of `Touch`.
        carried: what ``respond`` knows of each contact, trees in the same arrangement.
        respond: ``(relative velocity at the point, touch, carried) -> (impulse on the first body, carried)``.
    """
    velocities, planes = _visit_planes(velocities, mobility, touches.planes, carried.planes, respond)
    if touches.pairs is None:
        return velocities, Touches(planes=planes, pairs=None)

    def one_round(places: tuple[Velocities, Mobility], here: Any) -> tuple[tuple[Velocities, Mobility], Any]:
        velocities, mobility = places
        yields = _facing(mobility)

        def one_slot(facing: tuple[Velocities, Velocities], slot: Any) -> tuple[tuple[Velocities, Velocities], Any]:
            (first, second), (touch, known) = facing, slot
            relative = computed_once(first.at(touch.first_arm) - second.at(touch.second_arm))
            impulse, known = computed_once(respond(relative, touch, known))
            first = first + yields[0].change(impulse, touch.first_arm)
            second = second - yields[1].change(impulse, touch.second_arm)
            return computed_once((first, second)), known

        (first, second), after = jax.lax.scan(one_slot, _facing(velocities), here)
        met = each(joined, first, second)
        return (each(moved_on, met), each(moved_on, mobility)), after

    count = velocities.linear.x.shape[0]
    places = each(made_even, (velocities, mobility))
    (velocities, _), pairs = jax.lax.scan(one_round, places, (touches.pairs, carried.pairs))
    # After as many rounds as there are others, everyone is back at the first place.
    return each(lambda values: values[:count], velocities), Touches(planes=planes, pairs=pairs)


def _visit_planes(
    velocities: Velocities, mobility: Mobility, touches: Touch, carried: Any, respond: Respond
) -> tuple[Velocities, Any]:
    def one_slot(velocities: Velocities, here: Any) -> tuple[Velocities, Any]:
        touch, known = here
        impulse, known = computed_once(respond(computed_once(velocities.at(touch.first_arm)), touch, known))
        return computed_once(velocities + mobility.change(impulse, touch.first_arm)), known

    def one_plane(velocities: Velocities, here: Any) -> tuple[Velocities, Any]:
        return jax.lax.scan(one_slot, velocities, here)

    return jax.lax.scan(one_plane, velocities, (touches, carried))


def _facing[T](tree: T) -> tuple[T, T]:
    return each(lambda values: halves(values)[0], tree), each(lambda values: halves(values)[1], tree)


def made_even(values: jax.Array) -> jax.Array:
    """Return what bodies have, and zeros for nobody if their number is odd."""
    # Nobody, who meets whoever is left over when the number of bodies is odd, is not moved by any impulse.
    return values if values.shape[0] % 2 == 0 else jnp.concatenate([values, jnp.zeros_like(values[:1])])
