"""Clearance of moving bodies from the sides of their domain and from each other, checked in compiled code."""

import functools
import itertools

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.arrays import like
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.checks import CLEAR
from simkit.flow.obstacles.distance import distance_and_normal, positions


def are_clear(bodies: Bodies, params: Params, time: jax.Array) -> jax.Array:
    """Return whether at least two cells lie between every body and the sides, and between any two bodies; a boolean.

    Args:
        bodies: of a flow.
        params: parameters.
        time: time of the check, scalar.
    """
    grid, shapes = bodies.domain.grid, bodies.shapes(params, time)
    centers = [like(time, p) for p in positions(None, grid)]
    places = [body.now(params, time).position for body in bodies.bodies.values() if body.motion is not None]
    spare = [jnp.asarray(jnp.inf, time.dtype)]
    for i, side in itertools.product(bodies.domain.bounded(), (0, -1)):
        axis = grid.axes[i]
        points = [
            jnp.full((1,) * grid.dimension, like(time, axis.faces[side])) if k == i else p
            for k, p in enumerate(centers)
        ]
        spare += [
            jnp.min(distance_and_normal(shape, points)[0]) - CLEAR * axis.widths[side] for shape in shapes.values()
        ]
        # A body outside the domain has a large distance from the side too, hence the second condition.
        spare += [(place[i] - axis.faces[side]) * (1 if side == 0 else -1) for place in places]
    if len(shapes) > 1:
        distances = [distance_and_normal(shape, centers)[0] for shape in shapes.values()]
        widths = functools.reduce(jnp.maximum, [like(time, grid.along(a.widths, i)) for i, a in enumerate(grid.axes)])
        spare += [jnp.min(a + b - CLEAR * widths) for a, b in itertools.combinations(distances, 2)]
    return jnp.min(jnp.stack(spare)) >= 0
