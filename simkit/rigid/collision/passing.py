"""Pairs that pass each other within a step without touching."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.rounds import rounds

# Sweeps over the sides of a polytope for its point nearest to zero; they go on while faces are looked at.
SWEEPS = 6
# Clearance that may be rounding, in roundings of the sizes and the distance.
ROUNDINGS = 30
# Shapes count as touching that come nearer than this, relative to their sizes, before an axis is found between them.
TOUCHING = 1e-5


def passing(
    bodies: Bodies, motion: Motion, velocity: Vector, spin: Vector, asked: jax.Array, time_step: jax.Array
) -> jax.Array:
    """Return which pairs surely do not touch within a step, (rounds, pairs per round, ...); it has no derivative.

    Every shape is a box, a line or a point that a radius rounds, see `simkit.rigid.bodies.bodies.Bodies`. While centers
    move straight, the vectors from the points of the second shape to those of the first fill a polytope: the sum
    of both boxes and of the way. Shapes whose polytope is farther from zero than the sum of their radii do not touch.
    Boxes are taken as they lie in the middle of the step, and rotation from there is counted as the way of the
    corners: boxes and capsules that turn and miss each other by less than that may touch.

    Args:
        bodies: n of them.
        motion: where they are.
        velocity: of their centers in m/s.
        spin: angular velocity in rad/s.
        asked: which pairs to look at, (rounds, pairs per round, ...); the others are False.
        time_step: in s.
    """
    half, reach = time_step / 2, bodies.radius
    edges: list[Vector] = []
    if any(kind not in ("sphere", "disk") for kind in bodies.kinds):
        h, angle = bodies.half_lengths, half * norm(spin)
        lying = [size * axis for size, axis in zip((h.x, h.y, h.z), axes_of(motion.orientation), strict=True)]
        edges = [edge + half * cross(spin, edge) for edge in lying]
        reach = reach + (angle + angle**2) * norm(h)
    everything = motion.position + half * velocity, half * velocity, edges, reach
    # All in one array, of which those of a side are taken at once.
    leaves, structure = jax.tree.flatten(jax.lax.stop_gradient(everything))
    packed = computed_once(jnp.stack(leaves))
    one, other = (
        jax.tree.unflatten(structure, list(computed_once(jnp.take(packed, side, axis=1, mode="clip"))))
        for side in rounds(len(bodies.kinds))
    )
    sides = each(lambda *parts: jnp.stack(parts), one[1] - other[1], *one[2], *other[2])
    return _farther(one[0] - other[0], sides, one[3] + other[3], asked)


def _farther(center: Vector, sides: Vector, limit: jax.Array, asked: jax.Array) -> jax.Array:
    """Return which polytopes ``center + sum_i c_i sides_i``, c in [-1, 1], are farther from zero than a limit.

    Any axis along which a polytope is beyond the limit proves it. Tried are the normals of the faces, cross products of
    two sides, and the direction of the nearest point, which coordinate descent finds: where that is on an edge or a
    corner, all c but one are bounds, and descent ends; where it is in a face, the normal is among those tried.
    """
    size = jnp.sum(norm(sides), axis=0)
    limit = limit + ROUNDINGS * jnp.finfo(limit.dtype).eps * (norm(center) + size)
    center, sides, limit, near = computed_once((center, sides, limit, limit + TOUCHING * size))
    count = sides.x.shape[0]
    first, second = np.triu_indices(count, 1)
    last = len(first) + SWEEPS * count

    def one_side(carry: tuple) -> tuple:
        nearest, weights, beyond, _, index = carry
        number = index % count
        side, weight = each(lambda values: values[number], (sides, weights))
        moved = weight - dot(nearest, side) / jnp.maximum(dot(side, side), jnp.finfo(limit.dtype).tiny)
        moved = jnp.clip(moved, -1, 1)
        nearest = nearest + (moved - weight) * side
        weights = jax.lax.dynamic_update_index_in_dim(weights, moved, number, 0)
        nearest, weights = computed_once((nearest, weights))
        axis = nearest
        if count > 1:
            pair = jnp.minimum(index, len(first) - 1)
            normal = cross(sides[jnp.asarray(first)[pair]], sides[jnp.asarray(second)[pair]])
            axis = each(lambda one, other: jnp.where(index < len(first), one, other), normal, nearest)
        axis = computed_once(axis)
        separation = jnp.abs(dot(center, axis)) - jnp.sum(jnp.abs(dot(sides, axis)), axis=0)
        beyond = beyond | (separation > limit * norm(axis))
        open_still = asked & ~beyond & (dot(nearest, nearest) > near**2)
        return computed_once((nearest, weights, beyond, jnp.any(open_still), index + 1))

    def goes_on(carry: tuple) -> jax.Array:
        return carry[3] & (carry[4] < last)

    start = center, jnp.zeros_like(sides.x), jnp.zeros_like(asked), jnp.any(asked), jnp.int32(0)
    return asked & jax.lax.while_loop(goes_on, one_side, start)[2]
