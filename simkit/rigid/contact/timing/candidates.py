"""Candidates for the next event of balls: impact of two, impact on a plane, end of slipping, lift-off."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.contact.timing.balls import Balls
from simkit.rigid.contact.timing.path import Path, Quadratic
from simkit.rigid.contact.timing.resting import ROUNDINGS, Footing, slip
from simkit.rigid.contact.timing.time_of_impact import first_closing
from simkit.rigid.scene import Planes

PAIR, PLANE, GRIP, LIFT = range(4)


@dataclasses.dataclass(frozen=True)
class Candidates:
    """All events that may happen, in the order in which `times` gives theirs.

    Attributes:
        kind: PAIR, PLANE, GRIP or LIFT, each.
        first: index of the ball.
        second: index of the other ball of a pair, -1 for none.
        plane: index of the plane that a ball meets, -1 for none.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    plane: np.ndarray


def candidates(balls: int, planes: int) -> Candidates:
    """Return all pairs, every ball with every plane, and every ball alone if there are planes to rest on.

    There is at least one, for a single ball without planes an event that never happens.

    Args:
        balls: their number.
        planes: their number.
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


def places(count: int, like: jax.Array) -> jax.Array:
    """Return 0, 1, ... along a first axis, to be compared with a number for each place along the axes after it.

    Args:
        count: how many.
        like: any array with a first axis and those axes after it.
    """
    return jnp.arange(count, dtype=jnp.int32).reshape(count, *[1] * (like.ndim - 1))


def pick(chosen: jax.Array, tree: Any) -> Any:
    """Return a tree without its first axis: the values at the one place that is chosen, zero if none is.

    Args:
        chosen: True at that place along the first axis.
        tree: of arrays.
    """
    return jax.tree.map(lambda values: jnp.sum(jnp.where(chosen, values, 0), axis=0), tree)


def times(
    path: Path, balls: Balls, planes: Planes, support: jax.Array, stand: Footing, horizon: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return when each candidate would happen if nothing else did.

    Args:
        path: of the balls.
        balls: constants of the balls.
        planes: the fixed planes.
        support: index of the plane that each ball rests on, -1 for none.
        stand: how they rest on it.
        horizon: latest time of interest in s.

    Returns:
        Times in s along a first axis, infinite for what does not happen; whether each is found to round-off; and the
        rate at which what closes then does so. Without derivatives.
    """
    path, balls, planes, stand, horizon = jax.lax.stop_gradient((path, balls, planes, stand, horizon))
    count, found = balls.radius.shape[0], []
    if count > 1:
        found.append(_of_pairs(path, balls, horizon))
    if _may_rest(count, planes.offset.shape[0]):
        found.append(_of_polynomials(path, balls, planes, support, stand, horizon))
    # Searched for in one loop, gaps of both kinds would be written and read at each pass, which takes longer.
    when, settled, rates = (jnp.concatenate(parts) for parts in zip(*found, strict=True))
    return computed_once((when, settled, rates))


def _may_rest(balls: int, planes: int) -> bool:
    return planes > 0 or balls == 1


def _of_pairs(path: Path, balls: Balls, horizon: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Two balls meet when ``(D.D - R^2) / 2R`` closes, D between their centers: quadratic where loads are alike."""
    first, second = np.triu_indices(balls.radius.shape[0], 1)
    of_balls = (path.motion.position, path.motion.velocity, path.acceleration, norm(path.motion.velocity), balls.radius)
    # All are taken from the balls at once, in a program a tenth as long as one by one.
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
    """What closes as a polynomial in s = t / dt: gaps of planes, slips of contacts that do not grip, pressures."""
    kinds = (_planes(path, balls, planes, support), _grips(path, balls, stand), _lifts(path, stand))
    *factors, bend, bend_now, least, possible = (jnp.concatenate(column) for column in zip(*kinds, strict=True))
    of_rate = [power * factor for power, factor in enumerate(factors)][1:]

    def gap(s: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _horner(factors, s), _horner(of_rate, s)

    dt = path.time_step
    s, settled, rate = first_closing(gap, bend, bend_now, least, horizon / dt)
    # The last time of interest keeps its own value, not that of a division and a product.
    time = jnp.where(s == horizon / dt, horizon, s * dt)
    return jnp.where(possible, time, jnp.inf), settled, rate / dt


def _planes(path: Path, balls: Balls, planes: Planes, support: jax.Array) -> tuple[jax.Array, ...]:
    """A ball meets a plane when ``n.x - d - r`` closes."""
    count, dt = planes.offset.shape[0], path.time_step
    planes = each_ball(planes)
    motion, acceleration = each(lambda values: values[None], (path.motion, path.acceleration))
    speed, size = norm(motion.velocity), norm(acceleration.constant)
    acceleration = acceleration.map(lambda part: dot(part, planes.normal))
    eps = jnp.finfo(speed.dtype).eps
    # A moment later, since a load that just ceases to press is zero now, or what rounding makes of that.
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
        support != places(count, support[None]),
    )
    return each(lambda values: values.reshape(-1, *values.shape[2:]), columns)


def _grips(path: Path, balls: Balls, stand: Footing) -> tuple[jax.Array, ...]:
    """A contact grips when its slip, along the direction it has now, ends."""

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
    """A ball is lifted when the load ceases to press it to its plane."""
    parts, zero = path.pressure.parts, jnp.zeros_like(path.pressure.constant)
    if len(parts) == 1:
        return *parts, zero, zero, zero, zero, zero, stand.held
    twice = 2 * parts[-1]
    return *parts, zero, zero, twice, twice, zero, stand.held


def _horner(factors: Sequence[jax.Array], s: jax.Array) -> jax.Array:
    """Return the polynomial with the given factors of s^0, s^1 and so on."""
    return functools.reduce(lambda higher, factor: factor + s * higher, factors[::-1])


def each_ball(planes: Planes) -> Planes:
    """Return planes with an axis for the balls after their own."""
    return each(lambda values: values[:, None], planes)


def _bounds[T: (Vector, jax.Array)](quadratic: Quadratic[T]) -> tuple[T, ...]:
    """Return the control points of a quadratic on 0 <= s <= 1, among which it stays."""
    if len(quadratic.parts) == 1:
        return quadratic.parts
    start, linear, square = quadratic.parts
    return start, start + linear / 2, start + linear + square
