"""Impacts within a time step: pairs that collide, pairs that pass each other, and propagation of impulses."""

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

# Approach velocities below those that the loads cause in this many steps are no impacts: the bodies rest. Overlaps that
# overlap that such an approach reaches in one step is left as it is.
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
    """Return the velocities after the impacts, whether there was one, and the contacts without those that pass by.

    Args:
        before: velocities of the bodies.
        mobility: mobility of the bodies.
        motion: positions and momenta of the bodies.
        setting: bodies, planes and loads.
        touches: the contacts, trees of `Touch`.
        last: impulses of the last step, trees of `Push`.
        any_near: as for `simkit.rigid.contact.sweeping.sweeps.sweep`.
        time_step: in s.
        passes: passes over all contacts; with none, only impacts with friction are reported.
    """
    planes, pairs = _pressed(touches.planes, last.planes), None
    hits = [approaching(relative((before,), planes), planes, time_step)]
    if touches.pairs is not None:
        pairs = _pressed(touches.pairs, last.pairs)
        hits.append(approaching(relative(of_pairs(before, len(setting.bodies.kinds)), pairs), pairs, time_step))
    hits = computed_once(hits)
    by = None
    if pairs is not None:
        asked = jnp.any(hits[1], axis=1) & (jnp.min(pairs.gap, axis=1) > 0)

        def pass_by(asked: jax.Array) -> jax.Array:
            return passing(setting.bodies, motion, before.linear, before.angular, asked, time_step)

        by = jax.lax.cond(jnp.any(asked), pass_by, jnp.zeros_like, asked)
        pairs = apart(pairs, by)
        hits[1] = hits[1] & ~by[:, None]
    known = Touches(planes=planes, pairs=pairs)
    if passes == 0:
        # Rest ends an approach just when the gap closes; only friction then depends on the step of the impact.
        rubs = [touch.friction > 0 for touch in (planes, pairs) if touch is not None]
        hits = [hit & rub for hit, rub in zip(hits, rubs, strict=True)]
    impact = functools.reduce(jnp.logical_or, (jnp.any(hit, axis=(0, 1, 2)) for hit in hits))
    after = before
    if passes:
        visit = functools.partial(strike, time_step=time_step)

        def one_pass(velocities: Velocities, _: None) -> tuple[Velocities, None]:
            return sweep(velocities, mobility, known, Touches(planes=None, pairs=None), visit, any_near)[0], None

        def all_passes(velocities: Velocities) -> Velocities:
            return jax.lax.scan(one_pass, velocities, None, length=passes)[0]

        after = jax.lax.cond(jnp.any(impact), all_passes, lambda same: same, before)
    if by is not None and touches.pairs is not None:
        # A body that was struck does not go straight on: it may meet what it would have passed by.
        change = after - before
        turned = dot(change.linear, change.linear) + dot(change.angular, change.angular)
        one, other = of_pairs(jax.lax.stop_gradient(turned), len(setting.bodies.kinds))
        touches = dataclasses.replace(touches, pairs=apart(touches.pairs, by & (one + other == 0)[:, 0]))
    return after, impact, touches


def _pressed(touch: Touch, push: Push) -> Touch:
    # What rested with an impulse before, which other bodies may have passed on, goes on resting.
    speed = RESTING_STEPS * push.along / touch.normal_mass
    return dataclasses.replace(touch, rest_speed=computed_once(jnp.maximum(touch.rest_speed, speed)))
