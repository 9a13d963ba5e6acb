"""Impact law of two bodies, or of a body and a plane: all points that meet at one time are resolved together."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once, is_for_accelerators
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, each, shortened
from simkit.rigid.contact.sweeping.sweeps import Mobilities, Sides, all_pushed, over_slots, pushed, relative
from simkit.rigid.contact.sweeping.touching import Touch

# Points count as meeting at one time if their gaps are below this fraction of the displacement in a step when the first
# of them closes.
TOGETHER = 0.01
# Sweeps over the points of a pair for the impulses along the normals.
SWEEPS = 10


def approaching(velocity: Vector, touch: Touch, time_step: jax.Array) -> jax.Array:
    """Return which points meet within a step faster than `rest_speed`, bool, in the shape of the gaps.

    Args:
        velocity: of the first body relative to the second at the points, in m/s.
        touch: the points.
        time_step: in s.
    """
    speed = dot(velocity, touch.normal)
    return (speed < -touch.rest_speed) & (touch.gap + time_step * speed < 0)


def strike(sides: Sides, mobilities: Mobilities, touch: Touch, carried: Any, time_step: jax.Array) -> tuple[Sides, Any]:
    """Return the velocities after the impact of two bodies, or of a body and a plane, if they meet within a step.

    The points that meet first, at one time, are resolved together. With the normal velocities u before and the Delassus
    matrix W, the impulses N of the plastic impact obey ``N >= 0, z = u + W N >= 0, N z = 0``. Restitution multiplies
    them by ``1 + e`` (Moreau 1988, doi:10.1007/978-3-7091-2624-0_1), so that the loss of energy is ``1 - e^2`` times
    that of the plastic impact. Scaling N to the largest plastic loss makes this hold before N has converged. Friction
    then acts at the center of these impulses, within the cone of their sum.

    Args:
        sides: velocities of one or two bodies, (pairs, ...).
        mobilities: of these bodies.
        touch: the points, (slots, pairs, ...).
        carried: any pytree, returned unchanged, as a `Visit` must.
        time_step: in s.
    """
    velocity = computed_once(relative(sides, touch))
    met = computed_once(approaching(velocity, touch, time_step))

    def struck(sides: Sides) -> Sides:
        speed = dot(velocity, touch.normal)
        if touch.gap.shape[0] == 1:
            return _single(sides, mobilities, touch, velocity, jnp.where(met, speed, 0))
        return _together(sides, mobilities, touch, _first_to_meet(speed, met, touch.gap, time_step), speed)

    if is_for_accelerators():
        return struck(sides), carried
    return jax.lax.cond(jnp.any(met), struck, lambda same: same, sides), carried


def _single(sides: Sides, mobilities: Mobilities, touch: Touch, velocity: Vector, speed: jax.Array) -> Sides:
    along = staged(-(1 + _rebound(touch, speed)) * speed * touch.normal_mass)
    slip = staged(velocity - staged(dot(velocity, touch.normal)) * touch.normal + along * touch.response)
    impulse = along * touch.normal + shortened(-touch.slip_mass * slip, touch.friction * along)
    return all_pushed(sides, mobilities, touch, impulse)


def _rebound(touch: Touch, speed: jax.Array) -> jax.Array:
    """Return the ratio of normal speeds across an impact that acts a gap before the surfaces meet.

    With the speed u of approach and the gain G of its square while the gap closes, bodies meet at ``sqrt(u^2 + G)``,
    and separate to the same gap at ``sqrt(e^2 (u^2 + G) - G)``: the energy after the impact is that of an impact at
    contact.

    Args:
        touch: the points.
        speed: u, of either sign, in m/s.
    """
    e, squared = touch.restitution, speed * speed
    ratio = e * e - (1 - e * e) * _ratio(touch.gain, squared)
    # Without a gain the root is e, with its derivative also at e = 0.
    root = jnp.sqrt(jnp.where(ratio > 0, jnp.minimum(ratio, 1), 1))
    return jnp.where(touch.gain == 0, e, jnp.where(ratio > 0, root, 0))


def _first_to_meet(speed: jax.Array, met: jax.Array, gap: jax.Array, time_step: jax.Array) -> jax.Array:
    """Return the points of each pair that meet at the time at which its first point does, (slots, pairs, ...) bool."""
    speed, gap = jax.lax.stop_gradient((speed, gap))
    first = jnp.min(jnp.where(met, jnp.maximum(gap, 0) / jnp.where(met, -speed, 1), jnp.inf), axis=0)
    any_met = jnp.any(met, axis=0)
    fastest = jnp.max(jnp.where(met, -speed, 0), axis=0)
    return any_met & (gap + jnp.where(any_met, first, 0) * speed <= TOGETHER * time_step * fastest)


def _together(sides: Sides, mobilities: Mobilities, touch: Touch, meets: jax.Array, speed: jax.Array) -> Sides:
    before = jnp.where(meets, speed, 0)
    along, approach, response = _plastic(*computed_once((_delassus_matrix(mobilities, touch), before, meets)))
    # One number for all points of a pair, without which the loss of energy would not be that of Moreau's law.
    rebound = jnp.min(jnp.where(meets, _rebound(touch, before), 1), axis=0)
    along = along * ((1 + rebound) * _ratio(approach, response))
    sides = computed_once(all_pushed(sides, mobilities, touch, along * touch.normal))
    return _with_friction(sides, mobilities, touch, along)


def _with_friction(sides: Sides, mobilities: Mobilities, touch: Touch, along: jax.Array) -> Sides:
    """Return the velocities after friction, which acts at the center of the normal impulses."""
    whole = over_slots(along)
    share = computed_once(along / jnp.where(whole > 0, whole, 1))
    arms = each(lambda values: over_slots(share * values), (touch.first_arm, touch.second_arm, touch.normal))
    first_arm, second_arm, normal = computed_once(arms)
    center = dataclasses.replace(
        each(lambda values: values[0], touch), first_arm=first_arm, second_arm=second_arm, normal=normal
    )
    velocity = computed_once(relative(sides, center))
    slip = computed_once(velocity - dot(velocity, normal) * normal)
    moved = computed_once(pushed(each(jnp.zeros_like, sides), mobilities, center, slip))
    squared = dot(slip, slip)
    # Friction ends the slip, or is at the limit of the cone. The division uses |slip|^2: without slip, its product with
    # the whole velocity would be rounding.
    ends = _ratio(squared, dot(slip, relative(moved, center)))
    size = jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 1)
    part = computed_once(jnp.minimum(ends, center.friction * whole / size))
    return each(lambda before, by: before - part * by, sides, moved)


def _delassus_matrix(mobilities: Mobilities, touch: Touch) -> jax.Array:
    """Return the Delassus matrix W: normal velocities per unit normal impulses, (slots, slots, pairs, ...)."""
    levers = [cross(arm, touch.normal) for arm in (touch.first_arm, touch.second_arm)[: len(mobilities)]]
    turned = [side.angular @ staged(lever) for side, lever in zip(mobilities, levers, strict=True)]
    levers, turned = computed_once((levers, turned))
    n = touch.normal
    response = sum(side.linear for side in mobilities) * dot(n[:, None], n[None])
    return sum((dot(a[:, None], b[None]) for a, b in zip(levers, turned, strict=True)), response)


def _plastic(delassus: jax.Array, speed: jax.Array, meets: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the impulses N of a plastic impact (slots, pairs, ...), and ``-N u`` and ``N W N`` (pairs, ...)."""
    slots = speed.shape[0]
    mass = jnp.where(meets, 1 / jnp.stack([delassus[slot, slot] for slot in range(slots)]), 0)

    def one_sweep(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], None]:
        along, speed = carry
        new = []
        for slot in range(slots):
            new.append(jnp.maximum(along[slot] - speed[slot] * mass[slot], 0))
            speed = speed + delassus[slot] * (new[slot] - along[slot])
        return computed_once((jnp.stack(new), speed)), None

    # This initial guess is exact for bodies that land flat and centered, which then do not turn by rounding.
    guess = jnp.maximum(-speed, 0)
    by = over_slots(delassus * guess[:, None])
    factor = _ratio(over_slots(guess * guess), over_slots(guess * by))
    start = computed_once((factor * guess, speed + factor * by))
    along, after = jax.lax.scan(one_sweep, start, None, length=SWEEPS, unroll=is_for_accelerators())[0]
    return computed_once((along, -over_slots(along * speed), over_slots(along * (after - speed))))


def _ratio(above: jax.Array, below: jax.Array) -> jax.Array:
    """Return a quotient, and zero where the divisor is not positive."""
    positive = below > 0
    return staged(jnp.where(positive, above / jnp.where(positive, below, 1), 0))
