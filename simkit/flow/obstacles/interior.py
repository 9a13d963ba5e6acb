"""Momentum and scalar content of the fluid inside a body, to be subtracted from the loads on the body."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import control_volumes, integral
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.distance import positions
from simkit.flow.obstacles.indicator import indicator
from simkit.flow.obstacles.motion import Kinematics, turned
from simkit.flow.operators.differences import inside


class Moments(NamedTuple):
    """Integrals over a body of 1, of the arm a from the pivot, and of a a.

    Attributes:
        volume: number.
        first: ``(dimension,)``.
        second: ``(dimension, dimension)``.
    """

    volume: jax.Array
    first: jax.Array
    second: jax.Array


def moments(body: Body, now: Kinematics, domain: Domain, params: Params, dtype) -> Moments:
    """Return the volume and the moments of a body.

    Args:
        body: the body.
        now: position and velocity of the body.
        domain: the domain.
        params: parameters.
        dtype: of the result.
    """
    grid = domain.grid
    part = indicator(body.shape_at(params, now, domain), None, grid, dtype)
    for i, axis in enumerate(grid.axes):
        part = part * like(part, grid.along(axis.widths, i))
    arm = body.arm([like(part, p) for p in positions(None, grid)], now, domain)
    first = [jnp.sum(part * a) for a in arm]
    second = [[jnp.sum(part * a * b) for b in arm] for a in arm]
    return Moments(jnp.sum(part), jnp.stack(first), jnp.stack([jnp.stack(row) for row in second]))


def gained_inside(
    body: Body,
    domain: Domain,
    params: Params,
    before: tuple[jax.Array, Velocity],
    after: tuple[jax.Array, Velocity],
) -> jax.Array:
    """Return the increase of momentum and angular momentum of the fluid inside a body, less that due to its motion.

    The momentum of an incompressible fluid in a closed container follows from the motion of the container alone: it is
    its volume times the velocity of its centroid, whatever the fluid does. The angular momentum about the pivot is that
    of a rigid interior, and where the body turns that of the flow relative to it, summed over the grid. As the pivot
    moves on, the torque about it is the rate of change of angular momentum plus ``velocity x momentum``.

    Args:
        body: a moving body.
        domain: the domain.
        params: parameters.
        before: a time, and the velocity of the flow at that time.
        after: a later time, likewise.
    """
    times = before[0], after[0]
    dtype = after[1][0].dtype
    places = [body.now(params, t) for t in times]
    last = moments(body, places[1], domain, params, dtype)
    # Moments are summed over the grid once and transformed to the other time: sums at two positions would differ by
    # discretization errors.
    held = [_transformed(last, places[1], place) for place in places]
    totals = [_rigid(m, place) for m, place in zip(held, places, strict=True)]
    dimension = domain.grid.dimension
    change = totals[1] - totals[0]
    if body.motion is not None and (body.motion.angle is not None or body.spin is not None):
        one, other = (
            _relative(body, place, domain, params, velocity)
            for place, (_, velocity) in zip(places, (before, after), strict=True)
        )
        change = change.at[dimension:].add(other - one)
    drift = [_turn(jnp.outer(_velocity(p), t[:dimension])) for p, t in zip(places, totals, strict=True)]
    return change.at[dimension:].add((drift[0] + drift[1]) / 2 * (times[1] - times[0]))


def kept_inside(
    body: Body,
    domain: Domain,
    params: Params,
    before: tuple[jax.Array, jax.Array],
    after: tuple[jax.Array, jax.Array],
) -> jax.Array:
    """Return the increase of the amount of a scalar in the fluid inside a body.

    Args:
        body: the body.
        domain: the domain.
        params: parameters.
        before: a time, and the scalar at the cell centers at that time.
        after: a later time, likewise.
    """
    parts = [
        indicator(body.shape_at(params, body.now(params, time), domain), None, domain.grid, scalar.dtype)
        for time, scalar in (before, after)
    ]
    mean = integral(parts[0] * before[1], domain.grid) / integral(parts[0], domain.grid)
    # Relative to the earlier mean, so that errors of the body's volume on the grid, which vary as it moves, drop out.
    return integral(parts[1] * (after[1] - mean), domain.grid)


def rate_inside(body: Body, domain: Domain, params: Params, time: jax.Array, rate: jax.Array | float) -> jax.Array:
    """Return the integral over a body of a rate per volume.

    Args:
        body: the body.
        domain: the domain.
        params: parameters.
        time: time.
        rate: at the cell centers at that time, a number or an array.
    """
    inside = indicator(body.shape_at(params, body.now(params, time), domain), None, domain.grid, time.dtype)
    return integral(inside * rate, domain.grid)


def _transformed(m: Moments, known: Kinematics, wanted: Kinematics) -> Moments:
    """Return the moments of a body moved from one position to another."""
    dimension = len(m.first)
    size = 1.0 if known.size is None or wanted.size is None else wanted.size / known.size
    identity = jnp.eye(dimension, dtype=m.first.dtype)
    angle = None if known.angle is None or wanted.angle is None else wanted.angle - known.angle
    matrix = size * jnp.stack([jnp.stack(turned(list(row), angle)) for row in identity], axis=1)
    volume = size**dimension
    return Moments(volume * m.volume, volume * matrix @ m.first, volume * matrix @ m.second @ matrix.T)


def _rigid(m: Moments, now: Kinematics) -> jax.Array:
    """Return the momentum and the angular momentum about the pivot of fluid that moves with the body."""
    velocity, slopes = _velocity(now), now.gradient(len(m.first)).astype(m.first.dtype)
    momentum = m.volume * velocity + slopes @ m.first
    return jnp.concatenate([momentum, _turn(jnp.outer(m.first, velocity) + m.second @ slopes.T)])


def _relative(body: Body, now: Kinematics, domain: Domain, params: Params, velocity: Velocity) -> jax.Array:
    """Return the angular momentum about the pivot of the fluid's motion relative to the body."""
    grid = domain.grid
    shape = body.shape_at(params, now, domain)
    products = []
    for i, f in enumerate(velocity):
        inner = inside(f, i, grid)
        arm = body.arm([like(f, p) for p in positions(i, grid)], now, domain)
        moved = indicator(shape, i, grid, f.dtype) * (inner - now.component(i, arm)) * like(f, control_volumes(i, grid))
        products.append(jnp.stack([jnp.sum(a * moved) for a in arm]))
    return _turn(jnp.stack(products, axis=1))


def _velocity(now: Kinematics) -> jax.Array:
    assert now.velocity is not None, "the body moves"
    return jnp.stack(now.velocity)


def _turn(product: jax.Array) -> jax.Array:
    """Return ``a x b`` of the matrix of products ``a_i b_j``: 1 number in the plane, 3 in space."""
    planes = ((0, 1),) if len(product) == 2 else ((1, 2), (2, 0), (0, 1))
    return jnp.stack([product[i, j] - product[j, i] for i, j in planes])
