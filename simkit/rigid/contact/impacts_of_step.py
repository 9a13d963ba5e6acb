"""Impacts within a time step: detection, exclusion of pairs that pass each other, and propagation of impulses."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once, is_for_accelerators
from simkit.rigid.algebra.vector import Vector, dot, each
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.broad_phase import passing
from simkit.rigid.contact.sweeping.arrangement import apart, of_pairs
from simkit.rigid.contact.sweeping.impacts import approaching, strike
from simkit.rigid.contact.sweeping.mobility import Mobility, Velocities
from simkit.rigid.contact.sweeping.sweeps import Sides, Touches, relative, sweep
from simkit.rigid.contact.sweeping.touching import Push, Touch
from simkit.rigid.scene import Setting

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
    """
    planes, hits = _meeting(touches.planes, last.planes, (start,), shift, time_step)
    if touches.pairs is None:
        change, impact = _strike(start, mobility, Touches(planes=planes, pairs=None), [hits], time_step, passes)
        return change, impact, touches
    pairs, hits_of_pairs, passing_by = _impacts_of_pairs(
        start, shift, motion, setting, touches.pairs, last.pairs, time_step
    )
    contacts = Touches(planes=planes, pairs=pairs)
    change, impact = _strike(start, mobility, contacts, [hits, hits_of_pairs], time_step, passes)
    pairs = _without_passing(touches.pairs, passing_by, change, len(setting.bodies.kinds))
    return change, impact, dataclasses.replace(touches, pairs=pairs)


def _strike(
    start: Velocities,
    mobility: Mobility,
    contacts: Touches,
    hits: list[jax.Array],
    time_step: jax.Array,
    passes: int,
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
        return sweep(velocities, mobility, contacts, Touches(planes=None, pairs=None), visit)[0], None

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
) -> tuple[Touch, jax.Array, jax.Array]:
    """Return the contacts of pairs without those that pass by, where there are impacts, and which pairs pass by."""
    count = len(setting.bodies.kinds)
    first, second = of_pairs((start, shift), count)
    seen, hits = _meeting(pairs, last, (first[0], second[0]), first[1] - second[1], time_step)
    candidates = jnp.any(hits, axis=1) & (jnp.min(pairs.gap, axis=1) > 0)

    def pass_by(candidates: jax.Array) -> jax.Array:
        return passing(setting.bodies, motion, start.linear + shift, start.angular, candidates, time_step)

    passing_by = jax.lax.cond(jnp.any(candidates), pass_by, jnp.zeros_like, candidates)
    return apart(seen, passing_by), hits & ~passing_by[:, None], passing_by


def _without_passing(pairs: Touch, passing_by: jax.Array, change: Velocities, count: int) -> Touch:
    """Return the contacts of pairs without those that pass by.

    A body that had an impact changes direction and may meet a body that it would have passed, so its contacts stay.

    Args:
        pairs: (rounds, slots, pairs per round, ...).
        passing_by: which pairs would pass by, (rounds, pairs per round, ...).
        change: of the velocities by the impacts.
        count: number of bodies.
    """

    def where_passing() -> jax.Array:
        turned = dot(change.linear, change.linear) + dot(change.angular, change.angular)
        one, other = of_pairs(jax.lax.stop_gradient(turned), count)
        return apart(pairs, passing_by & (one + other == 0)[:, 0]).gap

    if is_for_accelerators():
        gap = where_passing()
    else:
        gap = jax.lax.cond(jnp.any(passing_by), where_passing, lambda: pairs.gap)
    return dataclasses.replace(pairs, gap=gap)
