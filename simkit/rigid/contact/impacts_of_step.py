"""Impacts within a time step: detection, exclusion of pairs that pass each other, and propagation of impulses."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.rigid.algebra.vector import dot
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.passing import passing
from simkit.rigid.contact.sweeping.arrangement import apart, of_pairs
from simkit.rigid.contact.sweeping.impacts import approaching, strike
from simkit.rigid.contact.sweeping.mobility import Mobility, Velocities
from simkit.rigid.contact.sweeping.sweeps import Touches, relative, sweep
from simkit.rigid.contact.sweeping.touching import Push, Touch
from simkit.rigid.scene import Setting

# Bodies rest if their approach velocity is below that which the loads cause in this many steps; faster ones have an
# impact. The overlap that such an approach reaches in one step is not corrected.
RESTING_STEPS = 2.0


def strike_all(
    before: Velocities,
    mobility: Mobility,
    motion: Motion,
    setting: Setting,
    touches: Touches,
    last: Touches,
    any_near: jax.Array | None,
    time_step: jax.Array,
    passes: int,
) -> tuple[Velocities, jax.Array, Touches]:
    """Return the velocities after the impacts, whether there was one, and the contacts without pairs that pass by.

    Args:
        before: velocities of the bodies.
        mobility: mobility of the bodies.
        motion: positions and momenta of the bodies.
        setting: bodies, planes and loads.
        touches: the contacts, trees of `Touch`.
        last: impulses of the last step, trees of `Push`.
        any_near: whether any pair may touch; None where there are no pairs.
        time_step: in s.
        passes: number of passes over all contacts; with 0, only impacts with friction are reported.
    """
    planes, pairs = _with_rest_speed(touches.planes, last.planes), None
    hits = [approaching(relative((before,), planes), planes, time_step)]
    passing_by = None
    if touches.pairs is not None:
        assert any_near is not None  # None only without pairs
        pairs, of_each_pair, passing_by = _impacts_of_pairs(
            before, motion, setting, touches.pairs, last.pairs, any_near, time_step
        )
        hits.append(of_each_pair)
    hits = computed_once(hits)
    impact_contacts = Touches(planes=planes, pairs=pairs)
    if passes == 0:
        # Resting impulses end an approach exactly when the gap closes; only friction depends on the step of impact.
        with_friction = [touch.friction > 0 for touch in (planes, pairs) if touch is not None]
        hits = [hit & has_friction for hit, has_friction in zip(hits, with_friction, strict=True)]
    impact = functools.reduce(jnp.logical_or, (jnp.any(hit, axis=(0, 1, 2)) for hit in hits))
    after = before
    if passes:
        visit = functools.partial(strike, time_step=time_step)

        def one_pass(velocities: Velocities, _: None) -> tuple[Velocities, None]:
            return sweep(velocities, mobility, impact_contacts, Touches(planes=None, pairs=None), visit, any_near)[
                0
            ], None

        def all_passes(velocities: Velocities) -> Velocities:
            return jax.lax.scan(one_pass, velocities, None, length=passes)[0]

        after = jax.lax.cond(jnp.any(impact), all_passes, lambda same: same, before)
    if passing_by is not None and touches.pairs is not None:
        touches = dataclasses.replace(
            touches, pairs=_without_passing(touches.pairs, passing_by, after - before, len(setting.bodies.kinds))
        )
    return after, impact, touches


def _with_rest_speed(touch: Touch, push: Push) -> Touch:
    """Return contacts with `rest_speed` raised to `RESTING_STEPS` times the change of velocity by the last impulse."""
    # A contact that rested under an impulse transmitted by other bodies then keeps resting.
    speed = RESTING_STEPS * push.along / touch.normal_mass
    return dataclasses.replace(touch, rest_speed=computed_once(jnp.maximum(touch.rest_speed, speed)))


def _impacts_of_pairs(
    before: Velocities,
    motion: Motion,
    setting: Setting,
    pairs: Touch,
    last: Push,
    any_near: jax.Array,
    time_step: jax.Array,
) -> tuple[Touch, jax.Array, jax.Array]:
    """Return the contacts of pairs without those that pass by, where there are impacts, and which pairs pass by."""

    # Only the arrays that change are results of conditions, which copy them.
    def where_near() -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        resting = _with_rest_speed(pairs, last)
        hits = approaching(relative(of_pairs(before, len(setting.bodies.kinds)), resting), resting, time_step)
        hits = computed_once(hits)
        candidates = jnp.any(hits, axis=1) & (jnp.min(resting.gap, axis=1) > 0)

        def pass_by(candidates: jax.Array) -> jax.Array:
            return passing(setting.bodies, motion, before.linear, before.angular, candidates, time_step)

        passing_by = jax.lax.cond(jnp.any(candidates), pass_by, jnp.zeros_like, candidates)
        return resting.rest_speed, apart(resting, passing_by).gap, hits & ~passing_by[:, None], passing_by

    def nowhere() -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        none = jnp.zeros_like(pairs.gap, bool)
        return pairs.rest_speed, pairs.gap, none, none[:, 0]

    # Most steps of bodies that lie apart end here, before anything is gathered for pairs.
    rest_speed, gap, hits, passing_by = jax.lax.cond(any_near, where_near, nowhere)
    return dataclasses.replace(pairs, rest_speed=rest_speed, gap=gap), hits, passing_by


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

    gap = jax.lax.cond(jnp.any(passing_by), where_passing, lambda: pairs.gap)
    return dataclasses.replace(pairs, gap=gap)
