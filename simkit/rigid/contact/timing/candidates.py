"""Candidates for the next event of balls: impact of two balls or on a plane, end of slipping, lift-off; their times."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once, is_for_accelerators
from simkit.rigid.algebra.quadratic import first_root
from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.contact.timing.path import Path, Quadratic
from simkit.rigid.contact.timing.resting import ROUNDINGS, Balls, Footing, slip
from simkit.rigid.scene import Planes

# One iteration suffices where the gap is quadratic in time; otherwise each about doubles the correct digits.
ITERATIONS = 5


def first_closing(
    gap: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    bend: jax.Array,
    bend_now: jax.Array,
    least_rate: jax.Array,
    horizon: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the first time at which gaps close, whether it has converged to round-off, and their rates at that time.

    From a time with gap c and rate b, the parabola ``c + b t + m t^2 / 2`` with a lower bound m of the curvature stays
    below the gap, so its first root is a lower bound of the time of closing, exact for a gap quadratic in time.
    Repeating this approaches the closing from below, quadratically if the gap closes at a nonzero rate. After a fixed
    number of iterations the lower bound reached is returned, from which a later call can continue.

    Not to be differentiated: see `simkit.core.implicit`.

    Args:
        gap: ``t -> (gap, its rate)``, elementwise.
        bend: m, a lower bound of the second derivative of the gap up to the horizon.
        bend_now: second derivative at t = 0.
        least_rate: rate that counts as rounding; a gap of zero at t = 0 closes only at a larger rate.
        horizon: latest time.

    Returns:
        The time, infinite where the gap stays open up to the horizon; whether it has converged, bool; the rate.
    """

    def advance(number: int, reached: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        time, _, step, _ = reached
        at_start, time = number == 0, time + step
        within_horizon = time <= horizon
        gap_left, rate = gap(jnp.minimum(time, horizon))
        closed = gap_left <= 0
        # A gap of zero with zero rate and no closing acceleration counts as open.
        still = at_start & closed & (jnp.abs(rate) <= least_rate)
        following = first_root(jnp.maximum(gap_left, 0), jnp.where(still, 0, rate), bend)
        # At its closing a gap may be zero and its rate positive by rounding alone.
        following = jnp.where(closed & ~at_start, 0, following)
        # Beyond the horizon the bound does not hold, and need not.
        following = jnp.where(within_horizon & ~(still & (bend_now >= 0)), following, jnp.inf)
        return time, step, following, rate

    # Each iteration computes the step to the next time; the last one computes the rate at the time reached.
    zero = jnp.zeros_like(bend)
    time, step, _, rate = jax.lax.fori_loop(
        0, ITERATIONS + 1, advance, (zero, zero, zero, zero), unroll=is_for_accelerators()
    )
    time = jnp.where(time <= horizon, time, jnp.inf)
    return time, step <= jnp.sqrt(jnp.finfo(step.dtype).eps) * horizon, rate


PAIR, PLANE, GRIP, LIFT = range(4)


@dataclasses.dataclass(frozen=True)
class Candidates:
    """All candidate events, int32 (candidates,) arrays in the order of `times`.

    Attributes:
        kind: PAIR, PLANE, GRIP or LIFT.
        first: index of the ball.
        second: index of the other ball of a pair, -1 for none.
        plane: index of the plane that a ball meets, -1 for none.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    plane: np.ndarray


def candidates(balls: int, planes: int) -> Candidates:
    """Return all pairs, every ball with every plane, and every single ball if there are planes to rest on.

    There is at least one candidate: for a single ball without planes, one whose time is infinite.

    Args:
        balls: number of balls.
        planes: number of planes.
    """
    one, other = np.triu_indices(balls, 1)
    ball, plane = np.tile(np.arange(balls), planes), np.repeat(np.arange(planes), balls)
    alone = np.arange(balls if _may_rest(balls, planes) else 0)
    none = np.full(len(alone), -1)
    rows = [
        (np.full(len(one), PAIR), one, other, np.full(len(one), -1)),
        (np.full(len(ball), PLANE), ball, np.full(len(ball), -1), plane),
        (np.full(len(alone), GRIP), alone, none, none),
        (np.full(len(alone), LIFT), alone, none, none),
    ]
    return Candidates(*(np.concatenate(column).astype(np.int32) for column in zip(*rows, strict=True)))


def index_axis(count: int, like: jax.Array) -> jax.Array:
    """Return the indices 0, 1, ..., shaped (count, 1, ...) to be compared with an index per element of further axes.

    Args:
        count: length of the first axis.
        like: an array with a first axis and those further axes.
    """
    return jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * (like.ndim - 1))


def pick(chosen: jax.Array, tree: Any) -> Any:
    """Return arrays without their first axis: the values at the chosen index, zero if there is none.

    Args:
        chosen: mask along the first axis with at most one True.
        tree: any pytree of arrays.
    """
    return jax.tree.map(lambda values: jnp.sum(jnp.where(chosen, values, 0), axis=0), tree)


def times(
    path: Path, balls: Balls, planes: Planes, support: jax.Array, stand: Footing, horizon: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the time of each candidate event if it were the first; without derivatives.

    Args:
        path: trajectory of the balls.
        balls: constants of the balls.
        planes: the fixed planes.
        support: index of the plane that each ball rests on, -1 for none.
        stand: contacts of resting balls.
        horizon: latest time in s.

    Returns:
        Times in s (candidates, ...), infinite for events that do not occur up to the horizon; whether each has
        converged to round-off, bool; and the rate of the gap, slip or pressure that then reaches zero.
    """
    path, balls, planes, stand, horizon = jax.lax.stop_gradient((path, balls, planes, stand, horizon))
    count, groups = balls.radius.shape[0], []
    if count > 1:
        groups.append(_of_pairs(path, balls, horizon))
    if _may_rest(count, planes.offset.shape[0]):
        groups.append(_of_polynomials(path, balls, planes, support, stand, horizon))
    # Two loops: one loop for both kinds writes and reads all gaps in each iteration, which is slower.
    when, exact, rates = (jnp.concatenate(parts) for parts in zip(*groups, strict=True))
    return computed_once((when, exact, rates))


def _may_rest(balls: int, planes: int) -> bool:
    return planes > 0 or balls == 1


def _of_pairs(path: Path, balls: Balls, horizon: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the times at which the gaps of pairs, ``(D.D - R^2) / 2R`` with D between the centers, reach zero."""
    first, second = np.triu_indices(balls.radius.shape[0], 1)
    of_balls = (path.motion.position, path.motion.velocity, path.acceleration, norm(path.motion.velocity), balls.radius)
    # One gather for all arrays: the program is a tenth as long as with one gather each.
    arrays, tree = jax.tree.flatten(of_balls)
    rows = jnp.stack(arrays)
    one, other = (jnp.take(rows, index, axis=1, mode="clip") for index in (first, second))
    distance, velocity, acceleration, *_ = jax.tree.unflatten(tree, list(one - other))
    speeds, reach = one[-2:] + other[-2:]
    dt = path.time_step

    def gap(time: jax.Array) -> tuple[jax.Array, jax.Array]:
        s = time / dt
        now = distance + time * velocity + dt * dt * acceleration.double_integral(s)
        rate = velocity + dt * acceleration.integral(s)
        return (dot(now, now) - reach * reach) / (2 * reach), dot(now, rate) / reach

    most = functools.reduce(jnp.maximum, [norm(point) for point in _bounds(acceleration)])
    speed = norm(velocity)
    farthest = norm(distance) + horizon * (speed + horizon / 2 * most)
    bend = (jnp.maximum(speed - horizon * most, 0) ** 2 - farthest * most) / reach
    bend_now = (speed * speed + dot(distance, acceleration.constant)) / reach
    least = ROUNDINGS * jnp.finfo(speed.dtype).eps * speeds
    return first_closing(gap, bend, bend_now, least, horizon)


def _of_polynomials(
    path: Path, balls: Balls, planes: Planes, support: jax.Array, stand: Footing, horizon: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the times at which polynomials in s = t / dt reach zero: gaps to planes, slips and contact pressures."""
    kinds = (_planes(path, balls, planes, support), _grips(path, balls, stand), _lifts(path, stand))
    *factors, bend, bend_now, least, possible = (jnp.concatenate(column) for column in zip(*kinds, strict=True))
    of_rate = [power * factor for power, factor in enumerate(factors)][1:]

    def gap(s: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _horner(factors, s), _horner(of_rate, s)

    dt = path.time_step
    s, exact, rate = first_closing(gap, bend, bend_now, least, horizon / dt)
    # The horizon is returned exactly, not rounded by the division and the product.
    time = jnp.where(s == horizon / dt, horizon, s * dt)
    return jnp.where(possible, time, jnp.inf), exact, rate / dt


def _planes(path: Path, balls: Balls, planes: Planes, support: jax.Array) -> tuple[jax.Array, ...]:
    """Return the polynomials of the gaps ``n.x - d - r`` of every ball with every plane, as columns.

    Columns: three or five coefficients, a lower bound of the second derivative, the second derivative at the start,
    the rate that counts as zero, and whether the event is possible.
    """
    count, dt = planes.offset.shape[0], path.time_step
    planes = each_ball(planes)
    motion, acceleration = each(lambda values: values[None], (path.motion, path.acceleration))
    speed, size = norm(motion.velocity), norm(acceleration.constant)
    acceleration = acceleration.map(lambda part: dot(part, planes.normal))
    eps = jnp.finfo(speed.dtype).eps
    # The acceleration shortly after the start: that of a load that just ceases to press is zero up to rounding now.
    soon = acceleration.at(jnp.sqrt(eps))
    soon = jnp.where(soon < -ROUNDINGS * eps * size, soon, 0)
    square = dt * dt
    columns = (
        dot(motion.position, planes.normal) - planes.offset - balls.radius,
        dt * dot(motion.velocity, planes.normal),
        *(square / whole * part for whole, part in zip((2, 6, 12), acceleration.parts, strict=False)),
        square * functools.reduce(jnp.minimum, _bounds(acceleration)),
        square * soon,
        (ROUNDINGS * eps * dt) * jnp.broadcast_to(speed, soon.shape),
        support != index_axis(count, support[None]),
    )
    return each(lambda values: values.reshape(-1, *values.shape[2:]), columns)


def _grips(path: Path, balls: Balls, stand: Footing) -> tuple[jax.Array, ...]:
    """Return the polynomials of the slips of resting balls along their present direction, columns as in `_planes`."""

    def along(velocity: Vector, angular_momentum: Vector) -> jax.Array:
        return dot(slip(velocity, angular_momentum, balls, stand.normal), stand.direction)

    now, dt = along(path.motion.velocity, path.motion.angular_momentum), path.time_step
    rates = [along(*both) for both in zip(path.acceleration.parts, path.torque.parts, strict=True)]
    slips, zero = stand.held & ~stand.rolls, jnp.zeros_like(now)
    if len(rates) == 1:
        return now, dt * rates[0], zero, zero, zero, zero, slips
    start, linear, square = rates
    bend = dt * jnp.minimum(linear, linear + 2 * square)
    return now, dt * start, dt * linear / 2, dt * square / 3, zero, bend, dt * linear, zero, slips


def _lifts(path: Path, stand: Footing) -> tuple[jax.Array, ...]:
    """Return the polynomials of the pressures of resting balls on their planes, columns as in `_planes`."""
    parts, zero = path.pressure.parts, jnp.zeros_like(path.pressure.constant)
    if len(parts) == 1:
        return *parts, zero, zero, zero, zero, zero, stand.held
    twice = 2 * parts[-1]
    return *parts, zero, zero, twice, twice, zero, stand.held


def _horner(factors: Sequence[jax.Array], s: jax.Array) -> jax.Array:
    """Return the polynomial with the given coefficients of s^0, s^1 and so on."""
    return functools.reduce(lambda higher, factor: factor + s * higher, factors[::-1])


def each_ball(planes: Planes) -> Planes:
    """Return planes with an axis of length 1 for the balls after their own."""
    return each(lambda values: values[:, None], planes)


def _bounds[T: (Vector, jax.Array)](quadratic: Quadratic[T]) -> tuple[T, ...]:
    """Return the Bezier control points of a quadratic on 0 <= s <= 1, whose convex hull contains it."""
    if len(quadratic.parts) == 1:
        return quadratic.parts
    start, linear, square = quadratic.parts
    return start, start + linear / 2, start + linear + square
