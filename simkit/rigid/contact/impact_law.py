"""Impact law of points that meet at one time, and all impacts of a step: detection, passing pairs, propagation."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once, is_for_accelerators
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, each, shortened
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.broad_phase import passing
from simkit.rigid.collision.near_pairs import NearPairs
from simkit.rigid.contact.gauss_seidel import (
    Mobilities,
    Partners,
    Sides,
    Touches,
    all_pushed,
    of_pairs,
    over_slots,
    pushed,
    relative,
    sweep,
)
from simkit.rigid.contact.law import Mobility, Push, Touch, Velocities
from simkit.rigid.contact.rows import apart
from simkit.rigid.scene import Setting

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
    # The response is zero where both bodies are held, which never meet.
    diagonal = jnp.stack([delassus[slot, slot] for slot in range(slots)])
    mass = jnp.where(meets, 1 / jnp.where(meets, diagonal, 1), 0)

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


# Bodies rest if their approach velocity is below that which the loads cause in this many steps; faster ones have an
# impact. The overlap that such an approach reaches in one step is not corrected.
RESTING_STEPS = 2.0


def strike_all(
    start: Velocities,
    shift: Vector,
    mobility: Mobility,
    motion: Motion,
    setting: Setting,
    touches: Touches,
    last: Touches,
    time_step: jax.Array,
    passes: int,
    partners: Partners | None = None,
) -> tuple[Velocities, jax.Array, Touches]:
    """Return the changes of velocity by impacts, whether there was one, and the contacts without pairs that pass by.

    Args:
        start: velocities of the bodies at the positions, which the impacts change.
        shift: change of the linear velocities expected up to the middle of the step, in m/s: by those velocities bodies
            meet or do not.
        mobility: mobility of the bodies.
        motion: positions and momenta of the bodies.
        setting: bodies, planes and loads.
        touches: the contacts, trees of `Touch`.
        last: impulses of the last step, trees of `Push`.
        time_step: in s.
        passes: number of passes over all contacts; with 0, only impacts with friction are reported.
        partners: the pairs; None for all.
    """
    near = None if partners is None else partners.near
    planes, hits = _meeting(touches.planes, last.planes, (start,), shift, time_step)
    if touches.pairs is None:
        change, impact = _strike(start, mobility, Touches(planes=planes, pairs=None), [hits], time_step, passes)
        return change, impact, touches
    pairs, hits_of_pairs, passing_by = _impacts_of_pairs(
        start, shift, motion, setting, touches.pairs, last.pairs, time_step, near
    )
    contacts = Touches(planes=planes, pairs=pairs)
    change, impact = _strike(start, mobility, contacts, [hits, hits_of_pairs], time_step, passes, partners)
    pairs = _without_passing(touches.pairs, passing_by, change, near)
    return change, impact, dataclasses.replace(touches, pairs=pairs)


def _strike(
    start: Velocities,
    mobility: Mobility,
    contacts: Touches,
    hits: list[jax.Array],
    time_step: jax.Array,
    passes: int,
    partners: Partners | None = None,
) -> tuple[Velocities, jax.Array]:
    """Return the changes of velocity by passes over all contacts, and whether there was an impact."""
    hits = computed_once(hits)
    if passes == 0:
        # Resting impulses end an approach exactly when the gap closes; only friction depends on the step of impact.
        with_friction = [touch.friction > 0 for touch in (contacts.planes, contacts.pairs) if touch is not None]
        hits = [hit & has_friction for hit, has_friction in zip(hits, with_friction, strict=True)]
    impact = functools.reduce(jnp.logical_or, (jnp.any(hit, axis=(0, 1, 2)) for hit in hits))
    unchanged = each(jnp.zeros_like, start)
    if passes == 0:
        return unchanged, impact
    visit = functools.partial(strike, time_step=time_step)

    def one_pass(velocities: Velocities, _: None) -> tuple[Velocities, None]:
        return sweep(velocities, mobility, contacts, Touches(planes=None, pairs=None), visit, partners)[0], None

    def all_passes(velocities: Velocities) -> Velocities:
        return jax.lax.scan(one_pass, velocities, None, length=passes)[0] - velocities

    return jax.lax.cond(jnp.any(impact), all_passes, lambda _: unchanged, start), impact


def _meeting(touch: Touch, push: Push, start: Sides, shift: Vector, time_step: jax.Array) -> tuple[Touch, jax.Array]:
    """Return contacts as impacts need them, and which have an impact.

    Impacts act on the velocities at the positions, but bodies meet by those in the middle of the step: the change of
    the normal velocity in between is added to gap and rest speed. `rest_speed` is at least `RESTING_STEPS` times the
    change of velocity by the last impulse, so that a contact under an impulse transmitted by other bodies keeps
    resting.

    Args:
        touch: the contacts.
        push: their impulses of the last step.
        start: velocities of the sides at the positions.
        shift: change of the velocity of the first side relative to the second up to the middle of the step.
        time_step: in s.
    """
    change = computed_once(dot(shift, touch.normal))
    rest_speed = jnp.maximum(touch.rest_speed, RESTING_STEPS * push.along / touch.normal_mass)
    seen = dataclasses.replace(
        touch,
        gap=touch.gap + time_step * change,
        rest_speed=rest_speed + change,
        # At an acceleration of 2 change / dt along the normal.
        gain=-4 * change * jnp.maximum(touch.gap, 0) / time_step,
    )
    seen = computed_once(seen)
    return seen, approaching(relative(start, seen), seen, time_step)


def _impacts_of_pairs(
    start: Velocities,
    shift: Vector,
    motion: Motion,
    setting: Setting,
    pairs: Touch,
    last: Push,
    time_step: jax.Array,
    near: NearPairs | None,
) -> tuple[Touch, jax.Array, jax.Array]:
    """Return the contacts of pairs without those that pass by, where there are impacts, and which pairs pass by."""
    first, second = of_pairs((start, shift), near)
    seen, hits = _meeting(pairs, last, (first[0], second[0]), first[1] - second[1], time_step)
    candidates = jnp.any(hits, axis=1) & (jnp.min(pairs.gap, axis=1) > 0)

    def pass_by(candidates: jax.Array) -> jax.Array:
        return passing(setting.bodies, motion, start.linear + shift, start.angular, candidates, time_step, near)

    passing_by = jax.lax.cond(jnp.any(candidates), pass_by, jnp.zeros_like, candidates)
    return apart(seen, passing_by), hits & ~passing_by[:, None], passing_by


def _without_passing(pairs: Touch, passing_by: jax.Array, change: Velocities, near: NearPairs | None) -> Touch:
    """Return the contacts of pairs without those that pass by.

    A body that had an impact changes direction and may meet a body that it would have passed, so its contacts stay.

    Args:
        pairs: (rounds, slots, pairs per round, ...).
        passing_by: which pairs would pass by, (rounds, pairs per round, ...).
        change: of the velocities by the impacts.
        near: the pairs; None for all.
    """

    def where_passing() -> jax.Array:
        turned = dot(change.linear, change.linear) + dot(change.angular, change.angular)
        one, other = of_pairs(jax.lax.stop_gradient(turned), near)
        return apart(pairs, passing_by & (one + other == 0)[:, 0]).gap

    if is_for_accelerators():
        gap = where_passing()
    else:
        gap = jax.lax.cond(jnp.any(passing_by), where_passing, lambda: pairs.gap)
    return dataclasses.replace(pairs, gap=gap)
