"""Event-driven contact of mechanisms in joint coordinates: impacts, and points that lift off, at their exact times.

Between events the points that stand are constraints, and the motion follows the Runge-Kutta method of fourth order from
the last event. The same method with a shorter step gives the motion at any time within the step, so that the time of an
event is the root of a smooth function, and has the derivative of the implicit function theorem.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once, computed_once_on_cpu, precise_product
from simkit.core.implicit import root_change
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.rigid.algebra.stages import with_tangents
from simkit.rigid.articulated.constraints import Constraints, Situation, situation
from simkit.rigid.articulated.dynamics import Inertia, Kinematics, equations, forward_kinematics
from simkit.rigid.articulated.impact_law import Rows, complementary, held, inverted, rows_of
from simkit.rigid.articulated.tree import Tree, integrate

# Parts in which the time to an event is divided in each round, and steps of Newton's method on the polynomial through
# the last ones. An event that begins and ends within the first parts of a time step is missed.
PARTS, NEWTON_STEPS = 8, 8
# In float32 a gap changes by too few digits within a part for further rounds.
ROUNDS = {"float64": 3, "float32": 1}
# Forward differences of values at the ends of equal parts: Newton's form of the polynomial through them, whose
# coefficients are small; powers have some of 1e5, whose rounding in float32 moves an impact by a millimeter.
DIFFERENCES = np.array([[(-1) ** (k - i) * math.comb(k, i) for i in range(PARTS)] for k in range(PARTS)])
# Gap in m, to the power of the precision, below which points touch; and in m, of those that stand at the start.
TOUCHING, NEAR = 0.75, 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism with contacts, and the rules of its events.

    Attributes:
        tree: its kinematic tree.
        constraints: its contacts, limits and equalities; it has no friction in joints.
        inertia: ``params -> Inertia``.
        force: ``(params, position, velocity, control) -> (nv,)``, of springs, dampers and actuators.
        gravity: ``params -> (3,)``, acceleration of free fall in m/s^2.
        friction: ``params -> (C,)``, coefficient of each contact; one with 0 slides, others do not slip.
        restitution: ``params -> e``.
        budget: events per time step.
        least_step: distance in m from every standing point within which no other point meets a surface.
        impact_law: ``"newton"``, or ``"poisson"`` whose impulses of expansion are e times those of compression.
    """

    tree: Tree
    constraints: Constraints
    inertia: Callable[[Params], Inertia]
    force: Callable[[Params, jax.Array, jax.Array, jax.Array], jax.Array]
    gravity: Callable[[Params], jax.Array]
    friction: Callable[[Params], jax.Array]
    restitution: Callable[[Params], jax.Array]
    budget: int = 8
    least_step: float = 0.0
    impact_law: str = "newton"


@pytree
class Stance:
    """State of a mechanism with events; contacts are followed by lower and upper limits of joints, n together.

    Attributes:
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        standing: whether each contact or limit is a constraint, bool (n,).
        scuffs: whether each is below a surface that it passed within the least step, bool (n,).
        impacts: number of impacts so far, int32.
        since: time since the last impact, or the start, in s.
        period: the same at the last impact.
        struck_position: coordinates at the last impact, or the start, (nq,).
        struck_velocity: velocities just after it, (nv,).
        friction: largest ratio of tangential to normal force or impulse so far.
        slipped: whether that was ever larger than the coefficient, bool.
        overflowed: whether a step ever had more events than its budget, bool.
        unsolved: whether an impact law was ever not satisfied, or a contact missed, bool.
    """

    position: jax.Array
    velocity: jax.Array
    standing: jax.Array
    scuffs: jax.Array
    impacts: jax.Array
    since: jax.Array
    period: jax.Array
    struck_position: jax.Array
    struck_velocity: jax.Array
    friction: jax.Array
    slipped: jax.Array
    overflowed: jax.Array
    unsolved: jax.Array


@pytree
class _Instant:
    """Equations at given coordinates and velocities.

    Attributes:
        gap: of contacts in m, and of limits, (n,).
        place: of contacts in m, (C, 3).
        error: of equalities, (m,).
        rows: of all constraints.
        free: accelerations without constraints, (nv,).
        drift: rate of change of J v while v stays, (3n + m,).
    """

    gap: jax.Array
    place: jax.Array
    error: jax.Array
    rows: Rows
    free: jax.Array
    drift: jax.Array


def start(mechanism: Mechanism, params: Params, position: jax.Array, velocity: jax.Array, control: jax.Array) -> Stance:
    """Return the state at the start.

    Points within ``NEAR`` of a surface that do not move away from it are placed on it, and stopped there by an impact
    without restitution.

    Args:
        mechanism: with its rules.
        params: of the simulation.
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        control: of the actuators, (nu,).
    """
    first = _instant(mechanism, params, control, position, velocity)
    near, n = jnp.abs(first.gap) <= NEAR, len(first.gap)
    speeds = first.rows.times(velocity)
    tolerance = jnp.finfo(speeds.dtype).eps ** 0.75 * (1 + jnp.max(jnp.abs(speeds), initial=0))
    pressed = near & (speeds[:n] <= tolerance)
    no_time = jnp.zeros_like(params["time_step"])
    # Without velocities, which the impact takes.
    placed = _arrival(mechanism, params, control, pressed, (position, 0 * velocity), no_time)
    position, now = placed.position, placed.now
    speeds = now.rows.times(velocity)
    active, is_solved = complementary(now.rows, speeds, pressed, pressed)
    velocity = velocity + now.rows.pushed(held(now.rows.mobility, now.rows.acting(active), speeds[:, None])[:, 0])
    standing, is_steady = _standing(mechanism, params, control, position, velocity, pressed)
    return Stance(
        position=position,
        velocity=velocity,
        standing=standing,
        scuffs=jnp.zeros(n, bool),
        impacts=jnp.int32(0),
        since=no_time,
        period=no_time,
        struck_position=position,
        struck_velocity=velocity,
        friction=no_time,
        slipped=no_time > 0,
        overflowed=no_time > 0,
        unsolved=~(is_solved & is_steady),
    )


def advance(mechanism: Mechanism, params: Params, stance: Stance, control: jax.Array) -> Stance:
    """Return the state one time step later.

    Args:
        mechanism: with its rules.
        params: of the simulation; ``time_step`` in s is one of them.
        stance: the state.
        control: of the actuators during the step, (nu,).
    """

    def one_event(moment: tuple[Stance, jax.Array], last: jax.Array) -> tuple[tuple[Stance, jax.Array], None]:
        def to_next_event(moment: tuple[Stance, jax.Array]) -> tuple[Stance, jax.Array]:
            return _to_next_event(mechanism, params, control, *moment, last)

        # Most steps have no event and end after the first iteration.
        return jax.lax.cond(moment[1] > 0, to_next_event, lambda moment: moment, moment), None

    moment = with_tangents((stance, params["time_step"]))
    (stance, _), _ = jax.lax.scan(one_event, moment, jnp.arange(mechanism.budget + 1) == mechanism.budget)
    return stance


def gaps(mechanism: Mechanism, stance: Stance) -> jax.Array:
    """Return the distances of contacts in m, and of joints from their limits, (n,).

    Args:
        mechanism: with its rules.
        stance: the state.
    """
    return _gaps(mechanism, stance.position)[0]


def _gaps(mechanism: Mechanism, position: jax.Array) -> tuple[jax.Array, Situation, Kinematics]:
    """Return the gaps of contacts and limits, (n,), all constraints, and the places of the links."""
    kinematics = forward_kinematics(mechanism.tree, position)
    here = situation(mechanism.constraints, mechanism.tree, kinematics, position)
    return jnp.concatenate([here.gap, here.error[: 2 * len(mechanism.constraints.limited)]]), here, kinematics


def _instant(
    mechanism: Mechanism, params: Params, control: jax.Array, position: jax.Array, velocity: jax.Array
) -> _Instant:
    """Return the equations at coordinates and velocities."""
    tree, limits = mechanism.tree, 2 * len(mechanism.constraints.limited)
    rough = jnp.concatenate([mechanism.friction(params) > 0, jnp.zeros(limits, bool)])

    def after(time: jax.Array) -> tuple[Any, ...]:
        gap, here, kinematics = _gaps(mechanism, integrate(tree, position, velocity, time))
        along = jnp.sum(_basis(here.normal)[:, :, :, None] * here.contact[:, None], axis=2)  # (C, 3, nv)
        bounds, none = here.scalar[:limits], jnp.zeros_like(here.scalar[:limits])
        jacobian = jnp.concatenate([along[:, 0], bounds, along[:, 1], none, along[:, 2], none, here.scalar[limits:]])
        return jacobian, gap, here.place, here.error[limits:], kinematics

    zero = jnp.zeros_like(params["time_step"])
    (jacobian, gap, place, error, kinematics), rates = jax.jvp(after, (zero,), (jnp.ones_like(zero),))
    gravity = mechanism.gravity(params)
    _, matrix, bias = equations(tree, mechanism.inertia(params), position, velocity, gravity, kinematics)
    mobility = computed_once_on_cpu(inverted(matrix))
    force = mechanism.force(params, position, velocity, control)
    now = _Instant(
        gap=gap,
        place=place,
        error=error,
        rows=rows_of(mobility, jacobian, rough),
        free=jnp.sum(mobility * (force - bias)[None], axis=1),
        drift=jnp.sum(rates[0] * velocity[None], axis=1),
    )
    return computed_once_on_cpu(now)


def _basis(normal: jax.Array) -> jax.Array:
    """Return each normal and two tangents, (C, 3, 3), of unit normals (C, 3)."""
    if not len(normal):
        return normal[:, None] * jnp.ones((1, 3, 1), normal.dtype)
    least = jnp.argmin(jnp.abs(jax.lax.stop_gradient(normal)) - jnp.asarray([0, 1e-3, 0], normal.dtype), axis=1)
    axis = jnp.asarray(least[:, None] == jnp.arange(3), normal.dtype)
    first = jnp.cross(axis, normal)
    first = first / jnp.sqrt(jnp.sum(first * first, axis=1))[:, None]
    return jnp.stack([normal, first, jnp.cross(normal, first)], axis=1)


def _pushes(now: _Instant, standing: jax.Array, velocity: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the forces of the constraints, and the changes of coordinates and velocities by which they hold.

    Args:
        now: the equations.
        standing: contacts and limits that are constraints, bool (n,).
        velocity: velocities, (nv,).
    """
    none = jnp.zeros_like(now.gap)
    wrong = jnp.concatenate([now.gap, none, none, now.error])
    speeds = jnp.stack([now.rows.times(now.free) + now.drift, wrong, now.rows.times(velocity)], axis=1)
    forces, shift, slip = held(now.rows.mobility, now.rows.acting(standing), speeds).T
    return forces, now.rows.pushed(shift), now.rows.pushed(slip)


@pytree
class _Arrival:
    """Coordinates and velocities at a time, the equations there, and the forces of the constraints (3n + m,)."""

    position: jax.Array
    velocity: jax.Array
    now: _Instant
    forces: jax.Array


def _arrival(
    mechanism: Mechanism,
    params: Params,
    control: jax.Array,
    standing: jax.Array,
    start: tuple[jax.Array, jax.Array],
    time: jax.Array,
) -> _Arrival:
    """Return the motion after a time: one step of the Runge-Kutta method, and a projection onto the constraints.

    All stages are turns of one loop, which compiles in a sixth of the time.
    """
    tree = mechanism.tree

    def evaluated(position: jax.Array, velocity: jax.Array) -> tuple[_Arrival, jax.Array, jax.Array]:
        now = _instant(mechanism, params, control, position, velocity)
        forces, shift, slip = _pushes(now, standing, velocity)
        return _Arrival(position=position, velocity=velocity, now=now, forces=forces), shift, slip

    def stage(carry: tuple, share: tuple[jax.Array, ...]) -> tuple[tuple, None]:
        here, speed, rate, _ = carry
        ahead, weight, is_whole, is_projected = share
        arrival, shift, slip = evaluated(*here)
        change = arrival.now.free + arrival.now.rows.pushed(arrival.forces)
        speed, rate = speed + weight * here[1], rate + weight * change
        moved = jnp.where(is_whole, speed, ahead * here[1])
        turned = jnp.where(is_whole, rate, ahead * change)
        base = tuple(jnp.where(is_projected, a, b) for a, b in zip(here, start, strict=True))
        moved, turned = (jnp.where(is_projected, a, time * b) for a, b in ((shift, moved), (slip, turned)))
        one = jnp.ones_like(time)
        return ((integrate(tree, base[0], moved, one), base[1] + turned), speed, rate, arrival), None

    shares = (
        jnp.asarray([0.5, 0.5, 1, 0, 0, 0], time.dtype),
        jnp.asarray([1, 2, 2, 1, 0, 0], time.dtype) / 6,
        jnp.arange(6) == 3,
        jnp.arange(6) == 4,
    )
    none = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(lambda: evaluated(*start)[0]))
    still = jnp.zeros_like(start[1])
    carry = (start, still, still, none)
    return jax.lax.scan(stage, carry, shares)[0][3]


def _residuals(arrival: _Arrival, standing: jax.Array) -> jax.Array:
    """Return what is zero at an event: the normal force of what stands, the gap of what does not, (n,)."""
    return jnp.where(standing, arrival.forces[: len(standing)], arrival.now.gap)


def _admitted(mechanism: Mechanism, place: jax.Array, standing: jax.Array) -> jax.Array:
    """Return which contacts, the first at places (C, 3), are not within the least step of a standing one, bool (n,)."""
    count = len(place)
    if mechanism.least_step <= 0 or not count:
        return jnp.ones(len(standing), bool)
    apart = jnp.sqrt(jnp.sum((place[:, None] - place[None]) ** 2, axis=2))
    near = jnp.any((apart < mechanism.least_step) & standing[None, :count], axis=1)
    return jnp.concatenate([standing[:count] | ~near, jnp.ones(len(standing) - count, bool)])


@pytree
class _Event:
    """The next event: which contact, when in s, the rate of its residual then, and whether there is one."""

    index: jax.Array
    time: jax.Array
    rate: jax.Array
    occurs: jax.Array


def _next_event(mechanism: Mechanism, params: Params, control: jax.Array, stance: Stance, left: jax.Array) -> _Event:
    """Return the first event within the time left, without derivatives.

    The time is divided into parts, and so is that in which it lies; what is zero then follows a polynomial in the last.
    """
    params, control, stance, left = jax.lax.stop_gradient((params, control, stance, left))
    standing, start = stance.standing, (stance.position, stance.velocity)
    parts = jnp.arange(1, PARTS + 1, dtype=left.dtype) / PARTS

    def residuals(time: jax.Array) -> tuple[jax.Array, jax.Array]:
        later = _arrival(mechanism, params, control, standing, start, time)
        return _residuals(later, standing), _admitted(mechanism, later.now.place, standing)

    def divide(now: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        turn, low, high, first, among, *_ = now
        residual, admitted = jax.vmap(residuals)(low + (high - low) * parts)
        ahead = jnp.concatenate([first[None], residual])
        crosses = (ahead[:-1] >= 0) & (residual < 0) & among & (admitted | (turn > 0))
        occurs = jnp.any(crosses)
        part = jnp.argmax(jnp.any(crosses, axis=1)).astype(jnp.int32)
        ends = low + (high - low) * part / PARTS, low + (high - low) * (part + 1) / PARTS
        index = jnp.argmax(crosses[part]).astype(jnp.int32)
        return turn + 1, *ends, ahead[part], crosses[part], residual[:, index], index, part, occurs

    gap = _gaps(mechanism, stance.position)[0]
    touches = gap >= -(jnp.finfo(left.dtype).eps ** TOUCHING)
    before = (
        jnp.int32(0),
        jnp.zeros_like(left),
        left,
        jnp.where(standing | touches, 0, -1).astype(left.dtype),
        jnp.ones(len(standing), bool),
        jnp.zeros(PARTS, left.dtype),
        jnp.int32(0),
        jnp.int32(0),
        jnp.bool_(True),
    )
    found = jax.lax.while_loop(lambda now: (now[0] < ROUNDS[str(left.dtype)]) & now[8], divide, before)
    _, low, high, _, _, samples, index, part, occurs = found
    differences = precise_product(jnp.asarray(DIFFERENCES, left.dtype), samples)
    orders = jnp.arange(1, PARTS, dtype=left.dtype)

    def polynomial(place: jax.Array) -> jax.Array:
        binomials = jnp.cumprod((PARTS * place - orders) / orders)
        return differences[0] + jnp.sum(differences[1:] * binomials)

    def with_rate(place: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(polynomial, (place,), (jnp.ones_like(place),))

    def improve(_: int, place: jax.Array) -> jax.Array:
        value, rate = with_rate(place)
        improved = place - value / jnp.where(rate < 0, rate, -jnp.inf)
        return jnp.clip(improved, part / PARTS, (part + 1) / PARTS)

    # In units of the interval of the samples, of which [low, high] is one part.
    place = jax.lax.fori_loop(0, NEWTON_STEPS, improve, (part + 0.5) / PARTS)
    unit = (high - low) * PARTS
    return _Event(
        index=index,
        time=low + unit * (place - part / PARTS),
        rate=with_rate(place)[1] / unit,
        occurs=occurs,
    )


def _to_next_event(
    mechanism: Mechanism, params: Params, control: jax.Array, stance: Stance, left: jax.Array, last: jax.Array
) -> tuple[Stance, jax.Array]:
    """Return the state after the next event and the time that is left, or that at the end of the step."""
    stance, left = computed_once((stance, left))
    standing = stance.standing
    event = computed_once(_next_event(mechanism, params, control, stance, left))
    applies = event.occurs & ~last
    until = jnp.where(applies, event.time, left)

    def residual(change: jax.Array, constants: tuple) -> jax.Array:
        params, control, start, standing, index, until = constants
        return _residuals(_arrival(mechanism, params, control, standing, start, until + change), standing)[index]

    # The value is zero; its derivatives are those of the time of the event.
    fixed = jax.lax.stop_gradient(until)
    start = stance.position, stance.velocity
    constants = (params, control, start, standing, event.index, fixed)
    change = root_change(residual, jnp.where(applies & (event.rate < 0), event.rate, 0), constants)
    until = jnp.where(applies, fixed + change, left)
    arrival = computed_once(_arrival(mechanism, params, control, standing, start, until))
    later = _used(
        mechanism,
        params,
        dataclasses.replace(stance, position=arrival.position, velocity=arrival.velocity, since=stance.since + until),
        arrival.forces,
        standing,
    )

    def struck(now: Stance) -> Stance:
        return _after(mechanism, params, control, now, arrival, event.index)

    def passed(now: Stance) -> Stance:
        below = ~standing & (arrival.now.gap < -NEAR)
        scuffs = below & (now.scuffs | ~_admitted(mechanism, arrival.now.place, standing))
        return dataclasses.replace(
            now,
            scuffs=scuffs,
            overflowed=now.overflowed | (event.occurs & last),
            unsolved=now.unsolved | jnp.any(below & ~scuffs),
        )

    return jax.lax.cond(applies, struck, passed, later), jnp.where(applies, left - until, 0)


def _used(mechanism: Mechanism, params: Params, now: Stance, impulses: jax.Array, acting: jax.Array) -> Stance:
    """Return the state with the friction that forces or impulses of acting contacts use."""
    n, count = len(acting), len(mechanism.constraints.contacts.friction)
    if not count:
        return now
    normal, first, second = (jax.lax.stop_gradient(impulses[k * n : k * n + count]) for k in range(3))
    along, limit = jnp.hypot(first, second), mechanism.friction(params) * normal
    presses = acting[:count] & (normal > 0)
    ratio = jnp.max(jnp.where(presses, along / jnp.where(presses, normal, 1), 0))
    rounding = jnp.finfo(normal.dtype).eps ** 0.5 * jnp.max(jnp.abs(normal))
    return dataclasses.replace(
        now,
        friction=jnp.maximum(now.friction, ratio),
        slipped=now.slipped | jnp.any(presses & (along > limit + rounding)),
    )


def _standing(
    mechanism: Mechanism,
    params: Params,
    control: jax.Array,
    position: jax.Array,
    velocity: jax.Array,
    candidates: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return which of the contacts at rest remain constraints, by their forces, and whether that was found."""
    now = _instant(mechanism, params, control, position, velocity)
    return complementary(now.rows, now.rows.times(now.free) + now.drift, candidates, candidates)


def _after(
    mechanism: Mechanism, params: Params, control: jax.Array, stance: Stance, arrival: _Arrival, index: jax.Array
) -> Stance:
    """Return the state after the event of one contact: an impact, or the end of a stance.

    All contacts that touch and close at that time act at once.
    """
    position, velocity, standing = stance.position, stance.velocity, stance.standing
    now, n = arrival.now, len(standing)
    own, touching = jnp.arange(n) == index, jnp.finfo(velocity.dtype).eps ** TOUCHING
    speeds, lifts = now.rows.times(velocity), jnp.any(standing & own)
    arrives = ~standing & (own | ((now.gap <= touching) & _admitted(mechanism, now.place, standing))) & (speeds[:n] < 0)
    arrives = arrives & ~lifts
    closed = arrives | (standing & ~(own & lifts))

    # A bounce that would be over within a time step is replaced by rest.
    restitution = mechanism.restitution(params)
    pressing = -(now.rows.times(now.free + now.rows.pushed(arrival.forces)) + now.drift)[:n]
    rests = (restitution < 1) & (-2 * restitution * speeds[:n] <= params["time_step"] * pressing)
    bounce = jnp.where(arrives & ~rests, restitution, 0)
    acts, velocity, impulses, is_solved = _struck(
        now, velocity, speeds, bounce, closed, arrives, mechanism.impact_law == "poisson"
    )

    rates = now.rows.times(velocity)
    still = jnp.finfo(rates.dtype).eps ** 0.75 * jnp.max(jnp.abs(speeds))
    # What acts without restitution is at rest, up to rounding that light links amplify.
    candidates = (acts & (bounce <= 0)) | (closed & standing & (jnp.abs(rates[:n]) <= still))
    remain, is_steady = _standing(mechanism, params, control, position, velocity, candidates)
    hits = jnp.any(arrives)
    after = _used(mechanism, params, stance, impulses, acts)
    return dataclasses.replace(
        after,
        velocity=velocity,
        standing=remain,
        impacts=stance.impacts + hits.astype(jnp.int32),
        since=jnp.where(hits, 0, stance.since),
        period=jnp.where(hits, stance.since, stance.period),
        struck_position=jnp.where(hits, position, stance.struck_position),
        struck_velocity=jnp.where(hits, velocity, stance.struck_velocity),
        unsolved=stance.unsolved | ~(is_solved & is_steady),
    )


def _struck(
    now: _Instant,
    velocity: jax.Array,
    speeds: jax.Array,
    bounce: jax.Array,
    closed: jax.Array,
    arrives: jax.Array,
    poisson: bool,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return which contacts act, the velocities and impulses of an impact, and whether its law holds."""
    n, rows = len(closed), now.rows
    rest = jnp.zeros_like(speeds[n:])

    def solved(speeds: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        acts, is_solved = complementary(rows, speeds, closed, first)
        return acts, held(rows.mobility, rows.acting(acts), speeds[:, None])[:, 0], is_solved

    if not poisson:
        acts, impulses, is_solved = solved(speeds + jnp.concatenate([bounce * speeds[:n], rest]), arrives)
        return acts, velocity + rows.pushed(impulses), impulses, is_solved
    acts, compression, is_compressed = solved(speeds, arrives)
    # The impulse of expansion is at least the restitution times that of compression.
    given = jnp.concatenate([bounce * compression[:n], rest])
    after = velocity + rows.pushed(compression + given)
    late, more, is_solved = solved(rows.times(after), jnp.zeros_like(closed))
    impulses = compression + given + more
    return acts | late, after + rows.pushed(more), impulses, is_compressed & is_solved
