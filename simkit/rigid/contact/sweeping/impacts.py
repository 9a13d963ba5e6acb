"""The law of impact of two bodies, or of a body and a plane: all points that meet at one time together."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, each, shortened
from simkit.rigid.contact.sweeping.sweeps import Sides, Mobilities, all_pushed, over_slots, pushed, relative
from simkit.rigid.contact.sweeping.touching import Touch

# Points meet together whose gaps, when the first of them closes, are below this part of the way of a step.
TOGETHER = 0.01
# Sweeps over the points of a pair for the impulses along the normals.
SWEEPS = 10


def approaching(velocity: Vector, touch: Touch, time_step: jax.Array) -> jax.Array:
    """Return which points meet within a step, faster than loads alone would make them.

    Args:
        velocity: of the first body relative to the second at the points, in m/s.
        touch: the points.
        time_step: in s.
    """
    speed = dot(velocity, touch.normal)
    return (speed < -touch.rest_speed) & (touch.gap + time_step * speed < 0)


def strike(sides: Sides, mobilities: Mobilities, touch: Touch, known: Any, time_step: jax.Array) -> tuple[Sides, Any]:
    """Return the velocities after the impact of two bodies, or of a body and a plane, if they meet within a step.

    The points that meet first, all at one time, are struck together. With u the velocities along their normals before
    and W N what impulses N change, the plastic impact is ``N >= 0, z = u + W N >= 0, N z = 0``. Restitution makes the
    impulses ``1 + e`` times as large (Moreau 1988, doi:10.1007/978-3-7091-2624-0_1), which leaves ``e^2`` times the
    energy that a plastic impact takes. The factor on N with which it takes most keeps that so where N is not yet exact.
    Friction
    then acts at the center of these impulses, within the cone of their sum.

    Args:
        sides: velocities, (pairs, ...).
        yields: how they yield.
        touch: the points, (slots, pairs, ...).
        known: whatever, returned as it is.
        time_step: in s.
    """
    velocity = computed_once(relative(sides, touch))
    met = computed_once(approaching(velocity, touch, time_step))

    def struck(sides: Sides) -> Sides:
        speed = dot(velocity, touch.normal)
        if touch.gap.shape[0] == 1:
            return _single(sides, mobilities, touch, velocity, jnp.where(met, speed, 0))
        return _together(sides, mobilities, touch, _first_to_meet(speed, met, touch.gap, time_step), speed)

    return jax.lax.cond(jnp.any(met), struck, lambda same: same, sides), known


def _single(sides: Sides, mobilities: Mobilities, touch: Touch, velocity: Vector, speed: jax.Array) -> Sides:
    along = staged(-(1 + touch.restitution) * speed * touch.normal_mass)
    velocity = velocity + along * touch.answer
    slip = staged(velocity - staged(dot(velocity, touch.normal)) * touch.normal)
    impulse = along * touch.normal + shortened(-touch.slip_mass * slip, touch.friction * along)
    return all_pushed(sides, mobilities, touch, impulse)


def _first_to_meet(speed: jax.Array, met: jax.Array, gap: jax.Array, time_step: jax.Array) -> jax.Array:
    """Return which points of each pair touch when its first point does."""
    speed, gap = jax.lax.stop_gradient((speed, gap))
    first = jnp.min(jnp.where(met, jnp.maximum(gap, 0) / jnp.where(met, -speed, 1), jnp.inf), axis=0)
    some = jnp.any(met, axis=0)
    fastest = jnp.max(jnp.where(met, -speed, 0), axis=0)
    return some & (gap + jnp.where(some, first, 0) * speed <= TOGETHER * time_step * fastest)


def _together(sides: Sides, mobilities: Mobilities, touch: Touch, meets: jax.Array, speed: jax.Array) -> Sides:
    before = jnp.where(meets, speed, 0)
    along, opposed, taken = _plastic(*computed_once((_answers(mobilities, touch), before, meets)))
    along = along * ((1 + touch.restitution) * _ratio(opposed, taken))
    sides = computed_once(all_pushed(sides, mobilities, touch, along * touch.normal))
    return _rubbed(sides, mobilities, touch, along)


def _rubbed(sides: Sides, mobilities: Mobilities, touch: Touch, along: jax.Array) -> Sides:
    """Return the velocities after friction, which acts at the center of the impulses along the normals."""
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
    # Slip is ended, or opposed as far as the cone allows. Its product with the whole velocity would be rounding where
    # there is none.
    ends = _ratio(squared, dot(slip, relative(moved, center)))
    size = jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 1)
    part = computed_once(jnp.minimum(ends, center.friction * whole / size))
    return each(lambda before, by: before - part * by, sides, moved)


def _answers(mobilities: Mobilities, touch: Touch) -> jax.Array:
    """Return W, the velocities along the normals by unit impulses along them, (slots, slots, pairs, ...)."""
    levers = [cross(arm, touch.normal) for arm in (touch.first_arm, touch.second_arm)[: len(mobilities)]]
    turned = [side.angular @ staged(lever) for side, lever in zip(mobilities, levers, strict=True)]
    levers, turned = computed_once((levers, turned))
    n = touch.normal
    answer = sum(side.linear for side in mobilities) * dot(n[:, None], n[None])
    return sum((dot(a[:, None], b[None]) for a, b in zip(levers, turned, strict=True)), answer)


def _plastic(answers: jax.Array, speed: jax.Array, meets: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the impulses N of a plastic impact (slots, pairs, ...), ``-N u`` and ``N W N`` (pairs, ...)."""
    slots = speed.shape[0]
    mass = jnp.where(meets, 1 / jnp.stack([answers[slot, slot] for slot in range(slots)]), 0)

    def one_sweep(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], None]:
        along, speed = carry
        new = []
        for slot in range(slots):
            new.append(jnp.maximum(along[slot] - speed[slot] * mass[slot], 0))
            speed = speed + answers[slot] * (new[slot] - along[slot])
        return computed_once((jnp.stack(new), speed)), None

    # Bodies that land flat and centered have this solution at once, without a turn by rounding.
    guess = jnp.maximum(-speed, 0)
    by = over_slots(answers * guess[:, None])
    factor = _ratio(over_slots(guess * guess), over_slots(guess * by))
    start = computed_once((factor * guess, speed + factor * by))
    along, after = jax.lax.scan(one_sweep, start, None, length=SWEEPS)[0]
    return computed_once((along, -over_slots(along * speed), over_slots(along * (after - speed))))


def _ratio(above: jax.Array, below: jax.Array) -> jax.Array:
    """Return a quotient, and zero where the divisor is not positive."""
    positive = below > 0
    return staged(jnp.where(positive, above / jnp.where(positive, below, 1), 0))
