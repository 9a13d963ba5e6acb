"""Candidates for the next event of balls: impact of two balls, impact on a plane, end of slipping, lift-off."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.contact.timing.balls import Balls
from simkit.rigid.contact.timing.path import Path, Quadratic
from simkit.rigid.contact.timing.resting import ROUNDINGS, Footing, slip
from simkit.rigid.contact.timing.time_of_impact import first_closing
from simkit.rigid.scene import Planes

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
