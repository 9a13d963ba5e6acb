"""Contact by sequential impulses: resting, stacked, sliding and rolling bodies, with propagation of impacts."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_number
from simkit.core.formulation import by_device, computed_once, is_for_accelerators
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import flag, number, whole
from simkit.core.status import Status
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, dot, each, norm, zeros
from simkit.rigid.bodies.bodies import Bodies, thickness
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, momentum_of_rotation
from simkit.rigid.collision.broad_phase import FASTER, nearby
from simkit.rigid.collision.near_pairs import NearPairs, first_list, refreshed, rounds_at_start
from simkit.rigid.collision.pairs import check_apart, contacts, plane_contacts
from simkit.rigid.collision.tournament import rounds
from simkit.rigid.contact.forces import ContactForces, indices
from simkit.rigid.contact.gauss_seidel import (
    Partners,
    Sides,
    Touches,
    applied,
    of_pairs,
    partners_of,
    relative,
    slot_by_slot,
    sweep,
)
from simkit.rigid.contact.impact_law import RESTING_STEPS, strike_all
from simkit.rigid.contact.law import (
    Mobility,
    Push,
    Rest,
    Touch,
    Velocities,
    mobility_of,
    rest_of,
    resting,
    velocities_of,
)
from simkit.rigid.contact.rows import apart, gaps_of, touches_of, touching_pairs, touching_planes
from simkit.rigid.contact.timing.resting import ROUNDINGS
from simkit.rigid.integrators import kick, move_freely
from simkit.rigid.parts import FORCES, FRICTION, HELD, PLANES, RESTITUTION, SHAPES
from simkit.rigid.scene import Planes, Setting

# A stack that the sweeps do not hold has a mean residual above the loads' change of velocity in a step: over these
# steps it was 1.7 or more for cubes under 30 to 10,000 times their mass, which sank, and 0.1 for one under 10 times.
LAG_STEPS = 30
# Added to the unit of the residual, as a fraction of the bodies' speed: without loads it is compared with this alone.
SLOW = 0.01


@pytree
class Pressed:
    """Memory of `Impulses`, carried from step to step.

    Attributes:
        pushes: contact impulses of the last step, trees of `Push`; those of near pairs are with their list.
        pressed: force and torque on each body by the resting contacts of the last step.
        lasting: force and torque expected in the next step: the loads, and the part of ``pressed`` that persisted.
        struck: whether there has been an impact, bool.
        deepest: largest overlap so far in m, at the start of any step.
        residual: of the sweeps of the last step, the largest speed in m/s at which surfaces still approach too fast.
        lag: running mean over `LAG_STEPS` of the largest excess of a contact, in units of the change of velocity
            of its bodies by the loads in a step, and a hundredth of their speed.
        unsolved: whether `lag` has ever exceeded 1, bool.
        early: whether a body had an impact in a step in which it moved by more than its thickness, bool.
        near: pairs of many bodies that may touch; None where all pairs are visited.
    """

    pushes: Touches
    pressed: Wrench
    lasting: Wrench
    struck: jax.Array
    deepest: jax.Array
    residual: jax.Array
    lag: jax.Array
    unsolved: jax.Array
    early: jax.Array
    near: NearPairs | None = None


@part(
    keys={
        "sweeps": whole("sweeps over all contacts in each step", 8, low=1),
        "impacts": whole("passes by which an impact travels from body to body; 0 makes all impacts plastic", 4),
        "correction": number("fraction of an overlap removed per step", 0.2, (0.0, 1.0)),
        "warm": flag("whether sweeps start from the impulses of the last step", True),
    }
)
@dataclasses.dataclass(frozen=True)
class Impulses:
    """Contact by sequential impulses at the velocities, with a fixed number of sweeps.

    A step is a leapfrog: internally, velocities are half a step behind positions, which makes smooth motion second
    order and flight under gravity exact. Loads act; then impacts with restitution, ``1 + e`` times the approach speed
    at that point of the sequence, so that an impact propagates through a row of touching bodies; then the impulses that
    keep bodies apart to the end of the step, ``v.n >= -gap / dt``, by projected Gauss-Seidel sweeps that start from the
    impulses of the last step; then bodies move with their new velocities.

    An impact acts at the start of its step, up to ``v dt`` before the surfaces meet, with the velocities there and the
    energy of an impact at contact. A run in which a body moves by more than its thickness in such a step has the status
    `STEP_TOO_LONG`; one whose sweeps leave contacts unsolved, as of a heavy body on a light one, `SWEEPS_TOO_FEW`.

    **Derivatives through an impact are not those of the physics.** An impact acts at the start of its step, so the
    later motion is a sawtooth function of the parameters with teeth one step wide, and its derivative is that of one
    tooth (a ball dropped from 1 m that bounced: dz/dz0 = 0.85 after 0.6 s, where the physics has -0.21). The status is
    then `STEPPED_IMPACT`, which `simkit grad` reports beside the number. `simkit.rigid.contact.events.Events` has the
    physical derivatives for spheres and disks, `simkit.rigid.contact.compliant.Compliant` those of soft contact.
    Through persistent contacts (sliding, rolling, standing) derivatives are physical to first order in the time step;
    second derivatives are not, since slips end and contacts begin at whole steps.

    The order of impacts before resting contact follows Guendelman, Bridson and Fedkiw (2003).

    Attributes:
        sweeps: number of sweeps over all contacts for the resting impulses.
        impacts: number of passes over all contacts for the impacts, each of which propagates an impact by at least one
            body in a row; 0 makes all impacts plastic.
        correction: fraction of an overlap removed per step, above an allowance of ``2 a dt^2`` with a the larger
            acceleration of the two bodies by loads, without which a stack does not come to rest.
        warm: whether sweeps start from the impulses of the last step; without it, stacks need many more sweeps.
        rounds: near pairs of many spheres, disks, capsules and boxes are found by cells, and visited in this many
            rounds of pairs without a common body. A run that needs more than the 16 of the start is continued with
            more. By default, all pairs are visited of fewer than 64 bodies; 0 visits all pairs of any bodies.

    Raises:
        UserError: for a number out of its range.

    Example:
        >>> block = rigid.Scene(
        ...     params={"gravity": 9.81, "time_step": 0.005},
        ...     bodies=rigid.box(1.0, 0.2, friction=0.5),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 0.1)),
        ...     dynamics=rigid.Impulses(sweeps=8),
        ...     planes=rigid.floor(),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(block), steps=100, every=100)
        >>> print(f"rests at {float(run['position'][-1, 0, 2]):.3f} m on {int(run['contacts'][-1])} contacts")
        rests at 0.100 m on 4 contacts
    """

    sweeps: int = 8
    impacts: int = 4
    correction: float = 0.2
    warm: bool = True
    rounds: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range before compilation."""
        check_integer("sweeps", self.sweeps, 1)
        check_integer("impacts", self.impacts, 0)
        check_number("correction", self.correction, 0, 1)
        if self.rounds is not None:
            check_integer("rounds", self.rounds, 0)

    @property
    def second_derivatives(self) -> str:
        """Return why second derivatives are not physical: they lack the changes of the times of contact."""
        return (
            "contacts begin, stick and end at whole steps, so second derivatives are those of the steps and not those "
            "of the physics; take the method events for spheres and disks, or compliant"
        )

    @property
    def supports(self) -> frozenset[str]:
        """Return every shape, planes, friction, and restitution if there are passes for impacts."""
        return SHAPES | {PLANES, FRICTION, HELD, FORCES} | ({RESTITUTION} if self.impacts else set())

    def start(self, motion: Motion, setting: Setting) -> Pressed:
        """Return a memory without impulses: no contact has acted yet."""
        # Only array shapes are needed; computing the arrays would put collision detection into derivatives.
        near, rounds = None, rounds_at_start(setting.bodies.kinds, self.rounds)
        if rounds:
            near = first_list(setting.bodies, motion, rounds)
        touches = jax.eval_shape(lambda: touches_of(motion, setting, mobility_of(setting.bodies, motion), near))
        zero = zeros(motion.position.x)
        pushes = _for_each(_zero_push, touches)
        if near is not None:
            near, pushes = dataclasses.replace(near, impulses=pushes.pairs), dataclasses.replace(pushes, pairs=None)
        return Pressed(
            pushes=pushes,
            pressed=Wrench(force=zero, torque=zero),
            lasting=setting.load(motion, jnp.zeros_like(motion.position.x[0])),
            struck=jnp.zeros_like(motion.position.x[0], bool),
            deepest=jnp.zeros_like(motion.position.x[0]),
            residual=jnp.zeros_like(motion.position.x[0]),
            lag=jnp.zeros_like(motion.position.x[0]),
            unsolved=jnp.zeros_like(motion.position.x[0], bool),
            early=jnp.zeros_like(motion.position.x[0], bool),
            near=near,
        )

    def step(
        self, motion: Motion, memory: Pressed, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Pressed]:
        """Return the motion and the memory one step later."""
        # Without the barriers, programs that fuse this step with other code would round it differently.
        motion, memory, bodies, planes, time_step = computed_once(
            (motion, memory, setting.bodies, setting.planes, time_step)
        )
        setting = dataclasses.replace(setting, bodies=bodies, planes=planes)
        load = computed_once(setting.load(motion, time))
        behind = kick(motion, bodies, memory.lasting, -time_step / 2)
        kicked = kick(behind, bodies, load, time_step)
        mobility = mobility_of(bodies, motion)
        before = velocities_of(kicked, bodies, mobility)
        loaded = (RESTING_STEPS * time_step / bodies.mass) * load.force
        pushes, pairs = memory.pushes, memory.near
        if memory.near is None or pairs is None:
            near = nearby(bodies, motion.position, kicked.velocity, time_step)
        else:
            there = dataclasses.replace(kicked, position=motion.position)
            pairs, origin = refreshed(pairs, bodies, there, FASTER * time_step)
            near, pushes = (
                pairs.are_real,
                dataclasses.replace(pushes, pairs=_carried_over(memory.near.impulses, origin)),
            )
        start = velocities_of(motion, bodies, mobility)
        shift = (time_step / (2 * bodies.mass)) * memory.lasting.force

        def resolve(bodies: Bodies, planes: Planes, *arguments: Any) -> _Resolved:
            return self._resolve_contacts(dataclasses.replace(setting, bodies=bodies, planes=planes), *arguments)

        # One formulation around all contacts; what they call asks `is_for_accelerators`.
        partners = partners_of(pairs, mobility)
        contacts = start, shift, before, motion, mobility, near, pushes, loaded, time_step, partners
        resolved = by_device(bodies, planes, *contacts, cpu=resolve, accelerator=resolve)
        before, struck, after, pushes = computed_once((before, resolved.struck, resolved.after, resolved.pushes))
        pressed = computed_once(_wrench((after - struck) / time_step, bodies, motion))
        lasting = load + Wrench(
            force=_persistent(memory.pressed.force, pressed.force),
            torque=_persistent(memory.pressed.torque, pressed.torque),
        )
        pushed = kick(kicked, bodies, _wrench(after - before, bodies, motion), jnp.ones_like(time_step))
        moved = kick(_moved(pushed, bodies, time_step), bodies, lasting, time_step / 2)
        far = norm(motion.velocity) * time_step > thickness(bodies)
        lag = memory.lag + (resolved.excess - memory.lag) / LAG_STEPS
        if pairs is not None:
            pairs, pushes = dataclasses.replace(pairs, impulses=pushes.pairs), dataclasses.replace(pushes, pairs=None)
        after_step = Pressed(
            pushes=pushes,
            pressed=pressed,
            lasting=lasting,
            struck=memory.struck | resolved.impact,
            deepest=jnp.maximum(memory.deepest, resolved.deepest),
            residual=resolved.residual,
            lag=lag,
            unsolved=memory.unsolved | (lag > 1),
            early=memory.early | jnp.any(far & (dot(resolved.change.linear, resolved.change.linear) > 0), axis=0),
            near=pairs,
        )
        return computed_once((moved, after_step))

    def diagnose(self, motion: Motion, memory: Pressed, setting: Setting) -> dict[str, jax.Array]:
        """Return the number of points that touch, the largest overlap, the largest one so far, and the residual."""
        gaps = gaps_of(motion, setting, memory.near)
        between = memory.pushes.pairs if memory.near is None else memory.near.impulses
        count, deepest = jnp.int32(0), jnp.zeros_like(motion.position.x[0])
        # A body placed on another touches it up to rounding.
        extent = jnp.max(norm(motion.position) + thickness(setting.bodies), axis=0)
        margin = ROUNDINGS * jnp.finfo(extent.dtype).eps * extent
        for gap, push in ((gaps.planes, memory.pushes.planes), (gaps.pairs, between)):
            if gap is not None:
                count += jnp.sum(((push.along > 0) | (gap <= margin)).astype(jnp.int32), axis=(0, 1, 2))
                deepest = jnp.maximum(deepest, jnp.max(-gap, axis=(0, 1, 2), initial=0))
        return {
            "contacts": count,
            "penetration": deepest,
            "largest_penetration": jnp.maximum(memory.deepest, deepest),
            "residual": memory.residual,
        }

    def forces(self, motion: Motion, memory: Pressed, setting: Setting) -> tuple[ContactForces, ...]:
        """Return the mean forces of all contacts in the last step, without impacts."""
        bodies, planes, near = setting.bodies, setting.planes, memory.near
        count, dt = len(bodies.kinds), setting.params["time_step"]
        groups = []
        if planes.offset.shape[0]:
            body, plane = (side.ravel() for side in np.meshgrid(range(count), range(planes.offset.shape[0])))
            groups.append((*indices(body, plane), plane_contacts(bodies, motion, planes), memory.pushes.planes, True))
        if count > 1:
            pushes = memory.pushes.pairs if near is None else near.impulses
            sides = indices(*rounds(count)) if near is None else (near.first, near.second)
            groups.append((*sides, contacts(bodies, motion, near), pushes, False))
        return tuple(
            ContactForces(
                first=first.ravel(),
                second=second.ravel(),
                points=points,
                along=jnp.moveaxis(push.along, 1, 0).reshape(points.gap.shape) / dt,
                friction=each(lambda v, p=points: jnp.moveaxis(v, 1, 0).reshape(p.gap.shape) / dt, push.friction),
                on_planes=on_planes,
            )
            for first, second, points, push, on_planes in groups
        )

    def status(self, memory: Pressed) -> jax.Array:
        """Return the first that holds of `SWEEPS_TOO_FEW`, `STEP_TOO_LONG`, `STEPPED_IMPACT` and `OK`."""
        code = jnp.where(memory.struck, jnp.int32(Status.STEPPED_IMPACT), jnp.int32(Status.OK))
        code = jnp.where(memory.early, jnp.int32(Status.STEP_TOO_LONG), code)
        return jnp.where(memory.unsolved, jnp.int32(Status.SWEEPS_TOO_FEW), code)

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse bodies that overlap at the start.

        Raises:
            UserError: naming the two that overlap most.
        """
        check_apart(setting.bodies, motion, setting.planes)

    def _resolve_contacts(
        self,
        setting: Setting,
        start: Velocities,
        shift: Vector,
        before: Velocities,
        motion: Motion,
        mobility: Mobility,
        near: jax.Array,
        last: Touches,
        loaded: Vector,
        time_step: jax.Array,
        partners: Partners | None,
    ) -> "_Resolved":
        """Return the velocities and impulses after all contacts of a step."""
        planes = touching_planes(motion, setting, mobility, loaded)
        pairs_of = None if partners is None else partners.near

        def resolved(pairs: Touch | None, pushes: Push | None) -> _Resolved:
            touches, impulses = Touches(planes=planes, pairs=pairs), Touches(planes=last.planes, pairs=pushes)
            change, impact, touches = computed_once(
                strike_all(
                    start, shift, mobility, motion, setting, touches, impulses, time_step, self.impacts, partners
                )
            )
            struck = computed_once(before + change)
            after, impulses, (residual, excess) = self._rest(struck, mobility, touches, impulses, time_step, partners)
            return _Resolved(
                change=change,
                struck=struck,
                after=after,
                pushes=impulses,
                impact=impact,
                deepest=_deepest(touches),
                residual=residual,
                excess=excess,
            )

        def with_pairs(pushes: Push) -> _Resolved:
            # Pairs that are not near have no impulse, so a member does not depend on near pairs of other members.
            pushes = each(lambda values: jnp.where(near[:, None], values, 0), pushes)
            return resolved(apart(touching_pairs(motion, setting, mobility, loaded, pairs_of), ~near), pushes)

        def planes_only(pushes: Push) -> _Resolved:
            alone = resolved(None, None)
            pushes = each(jnp.zeros_like, pushes)
            return dataclasses.replace(alone, pushes=dataclasses.replace(alone.pushes, pairs=pushes))

        if last.pairs is None:
            return resolved(None, None)
        if is_for_accelerators() or partners is not None:
            return with_pairs(last.pairs)
        # One condition around everything: the results of conditions are copied, and contacts are the largest arrays of
        # a step. The contacts of planes are compiled twice for it.
        return jax.lax.cond(jnp.any(near), with_pairs, planes_only, last.pairs)

    def _rest(
        self,
        velocities: Velocities,
        mobility: Mobility,
        touches: Touches,
        last: Touches,
        time_step: jax.Array,
        partners: Partners | None,
    ) -> tuple[Velocities, Touches, tuple[jax.Array, jax.Array]]:
        """Return the velocities and impulses after the resting sweeps, and their residual in m/s and in its unit."""
        rests = _for_each(lambda touch: rest_of(touch, self.correction, time_step), touches)

        def one_sweep(carry: tuple[Velocities, Touches], _: None) -> tuple[tuple[Velocities, Touches], None]:
            return sweep(carry[0], mobility, rests, carry[1], slot_by_slot(resting), partners), None

        if self.warm:
            impulses = _for_each(_impulse, rests, last)
            velocities = computed_once(applied(velocities, mobility, rests, impulses, partners))
        else:
            last = _for_each(_zero_push, rests)
        after, pushes = jax.lax.scan(one_sweep, (velocities, last), None, length=self.sweeps)[0]
        return after, pushes, _residuals(after, touches, rests, None if partners is None else partners.near)


@pytree
class _Resolved:
    """Result of the contacts of a step: change by impacts, velocities after them, and after the resting sweeps."""

    change: Velocities
    struck: Velocities
    after: Velocities
    pushes: Touches
    impact: jax.Array
    deepest: jax.Array
    residual: jax.Array
    excess: jax.Array


def _deepest(touches: Touches) -> jax.Array:
    """Return the largest overlap in m, zero without overlap; it has no derivative."""
    gaps = [touch.gap for touch in (touches.planes, touches.pairs) if touch is not None]
    deepest = [jnp.max(-gap, axis=(0, 1, 2), initial=0) for gap in gaps]
    return jax.lax.stop_gradient(functools.reduce(jnp.maximum, deepest))


def _residuals(
    after: Velocities, touches: Touches, rests: Touches, near: NearPairs | None
) -> tuple[jax.Array, jax.Array]:
    """Return the largest speed in m/s by which velocities violate a contact, and the largest in the contact's own unit.

    They have no derivative.
    """
    after, touches, rests = jax.lax.stop_gradient((after, touches, rests))
    groups: list[tuple[Sides, Touch, Rest]] = [((after,), touches.planes, rests.planes)]
    if rests.pairs is not None:
        groups.append((of_pairs(after, near), touches.pairs, rests.pairs))
    residuals, excesses = [], []
    for sides, touch, rest in groups:
        violation = rest.least - dot(relative(sides, rest), rest.normal)
        speed = jnp.sqrt(functools.reduce(jnp.maximum, (dot(side.linear, side.linear) for side in sides)))
        unit = touch.rest_speed / RESTING_STEPS + SLOW * speed
        residuals.append(jnp.max(violation, axis=(0, 1, 2), initial=0))
        excesses.append(jnp.max(violation / jnp.where(unit > 0, unit, 1), axis=(0, 1, 2), initial=0))
    # Bounded, so that one hard impact alone does not raise the mean above 1.
    return functools.reduce(jnp.maximum, residuals), jnp.minimum(functools.reduce(jnp.maximum, excesses), LAG_STEPS / 3)


def _moved(motion: Motion, bodies: Bodies, time_step: jax.Array) -> Motion:
    if not all(kind in ("sphere", "disk") for kind in bodies.kinds):
        return move_freely(motion, bodies, time_step)
    # Spheres and disks rotate at a constant angular velocity.
    return dataclasses.replace(
        motion,
        position=motion.position + time_step * motion.velocity,
        orientation=turn(motion.orientation, time_step * angular_velocity(motion, bodies)),
    )


def _wrench(change: Velocities, bodies: Bodies, motion: Motion) -> Wrench:
    """Return the impulses and angular impulses of a change of velocities."""
    return Wrench(
        force=change.linear * bodies.mass,
        torque=momentum_of_rotation(bodies, motion.orientation, change.angular),
    )


def _for_each(function: Callable, *touches: Touches) -> Touches:
    planes = function(*(group.planes for group in touches))
    return Touches(planes=planes, pairs=function(*(group.pairs for group in touches)) if touches[0].pairs else None)


def _impulse(rest: Rest, push: Push) -> Vector:
    return push.along * rest.normal + push.friction


def _zero_push(contact: Touch | Rest) -> Push:
    like = contact.normal_mass
    return Push(along=jnp.zeros_like(like), friction=zeros(like))


def _carried_over(push: Push, origin: jax.Array) -> Push:
    """Return the impulses of the last step at the places of a new list of pairs, zero for new pairs.

    Args:
        push: (rounds, slots, pairs per round).
        origin: as from `refreshed`.
    """

    def moved(values: jax.Array) -> jax.Array:
        flat = jnp.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
        return jnp.moveaxis(flat.at[origin].get(mode="fill", fill_value=0), -1, 1)

    return each(moved, push)


def _persistent(last: Vector, now: Vector) -> Vector:
    """Return the part of a force that already acted a step before, ``clip(last . now / |now|^2, 0, 1) now``.

    Only persistent forces are extrapolated to the half step between velocities and positions; impulsive ones are not.
    """
    # Of unit length, since the derivative of a quotient of squares divides by the fourth power, which underflows.
    size = norm(now)
    present = size > 0
    direction = each(lambda values: values / jnp.where(present, size, 1), now)
    share = jnp.clip(dot(last, direction) / jnp.where(present, size, 1), 0, 1)
    return jnp.where(present, share, 0) * now
