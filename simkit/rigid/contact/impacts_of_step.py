"""Impacts within a time step: detection, exclusion of pairs that pass each other, and propagation of impulses."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
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
        time_step: in s.
        passes: number of passes over all contacts; with 0, only impacts with friction are reported.
    """
    planes = _with_rest_speed(touches.planes, last.planes)
    hits = approaching(relative((before,), planes), planes, time_step)
    if touches.pairs is None:
        contacts = Touches(planes=planes, pairs=None)
        return *_strike(before, mobility, contacts, [hits], time_step, passes), touches
    pairs, hits_of_pairs, passing_by = _impacts_of_pairs(before, motion, setting, touches.pairs, last.pairs, time_step)
    contacts = Touches(planes=planes, pairs=pairs)
    after, impact = _strike(before, mobility, contacts, [hits, hits_of_pairs], time_step, passes)
    pairs = _without_passing(touches.pairs, passing_by, after - before, len(setting.bodies.kinds))
    return after, impact, dataclasses.replace(touches, pairs=pairs)


def _strike(
    before: Velocities,
    mobility: Mobility,
    contacts: Touches,
    hits: list[jax.Array],
    time_step: jax.Array,
    passes: int,
) -> tuple[Velocities, jax.Array]:
    """Return the velocities after passes over all contacts, and whether there was an impact."""
    hits = computed_once(hits)
    if passes == 0:
        # Resting impulses end an approach exactly when the gap closes; only friction depends on the step of impact.
        with_friction = [touch.friction > 0 for touch in (contacts.planes, contacts.pairs) if touch is not None]
        hits = [hit & has_friction for hit, has_friction in zip(hits, with_friction, strict=True)]
    impact = functools.reduce(jnp.logical_or, (jnp.any(hit, axis=(0, 1, 2)) for hit in hits))
    if passes == 0:
        return before, impact
    visit = functools.partial(strike, time_step=time_step)

    def one_pass(velocities: Velocities, _: None) -> tuple[Velocities, None]:
        return sweep(velocities, mobility, contacts, Touches(planes=None, pairs=None), visit)[0], None

    def all_passes(velocities: Velocities) -> Velocities:
        return jax.lax.scan(one_pass, velocities, None, length=passes)[0]

    return jax.lax.cond(jnp.any(impact), all_passes, lambda same: same, before), impact


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
    time_step: jax.Array,
) -> tuple[Touch, jax.Array, jax.Array]:
    """Return the contacts of pairs without those that pass by, where there are impacts, and which pairs pass by."""
    resting = _with_rest_speed(pairs, last)
    hits = approaching(relative(of_pairs(before, len(setting.bodies.kinds)), resting), resting, time_step)
    hits = computed_once(hits)
    candidates = jnp.any(hits, axis=1) & (jnp.min(resting.gap, axis=1) > 0)

    def pass_by(candidates: jax.Array) -> jax.Array:
        return passing(setting.bodies, motion, before.linear, before.angular, candidates, time_step)

    passing_by = jax.lax.cond(jnp.any(candidates), pass_by, jnp.zeros_like, candidates)
    return apart(resting, passing_by), hits & ~passing_by[:, None], passing_by


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
