"""Broad phase of collision detection: pairs that may meet within a step, and those that pass each other."""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once, is_for_accelerators
from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm
from simkit.rigid.bodies.bodies import Bodies, enclosing_radius
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.near_pairs import NearPairs
from simkit.rigid.collision.tournament import rounds

# An impact may make a light body faster than all were: the margin allows this multiple of the largest speed.
FASTER = 2.0
# Margin on the radii, so that rounding does not miss bodies that touch.
WIDER = 1.01


def nearby(bodies: Bodies, position: Vector, velocity: Vector, time_step: jax.Array) -> jax.Array:
    """Return whether the enclosing spheres of each pair may meet within a step, (rounds, pairs per round, ...).

    Args:
        bodies: the n bodies; pairs are in the order of `simkit.rigid.collision.tournament.rounds`.
        position: of their centers in m.
        velocity: of their centers in m/s.
        time_step: in s.
    """
    first, second = rounds(len(bodies.kinds))
    reach = WIDER * enclosing_radius(bodies) + FASTER * time_step * jnp.max(norm(velocity), axis=0)
    # With an odd number of bodies one body per round has no partner (index n); `mode="clip"` reads the last body
    # instead, and `real` masks the result.
    position, reach = jax.lax.stop_gradient((position, reach))
    one, other = (
        each(lambda values, side=side: jnp.take(values, side, axis=0, mode="clip"), (position, reach))
        for side in (first, second)
    )
    apart, limit = one[0] - other[0], one[1] + other[1]
    real = (jnp.maximum(first, second) < len(bodies.kinds)).reshape(first.shape + (1,) * (reach.ndim - 1))
    return real & (dot(apart, apart) < limit**2)


# Coordinate-descent sweeps over the sides of a polytope for its point nearest to the origin, beside one step for each
# face normal.
SWEEPS = 6
# Clearance that counts as rounding, in units of round-off of sizes and distance.
ROUNDINGS = 30
# Clearance, relative to the sizes, below which the search for a separating axis ends and the shapes count as touching.
TOUCHING = 1e-5
# Candidates are tested in batches of this many, or of all pairs divided by this number if that is more.
BATCH = 64


def passing(
    bodies: Bodies,
    motion: Motion,
    velocity: Vector,
    spin: Vector,
    candidates: jax.Array,
    time_step: jax.Array,
    near: NearPairs | None = None,
) -> jax.Array:
    """Return the pairs that certainly do not touch within a step, (rounds, pairs per round, ...) bool, no derivative.

    Every shape is a box, a line or a point rounded by a radius, see `simkit.rigid.bodies.bodies.Bodies`. While centers
    move straight, the vectors from the points of the second shape to those of the first fill a polytope, the Minkowski
    sum of both boxes and of the relative displacement. Shapes whose polytope is farther from the origin than the sum of
    their radii do not touch. Boxes have their orientation at the middle of the step, and rotation from there is bounded
    by the displacement of the corners: rotating boxes and capsules that miss each other by less count as touching.

    Args:
        bodies: the n bodies.
        motion: state of the bodies.
        velocity: of their centers in m/s.
        spin: angular velocity in rad/s.
        candidates: pairs to test, (rounds, pairs per round, ...) bool; the result of others is False.
        time_step: in s.
        near: the pairs; None for all.
    """
    half, reach = time_step / 2, bodies.radius
    edges: list[Vector] = []
    if any(kind not in ("sphere", "disk") for kind in bodies.kinds):
        h, angle = bodies.half_lengths, half * norm(spin)
        at_start = [size * axis for size, axis in zip((h.x, h.y, h.z), axes_of(motion.orientation), strict=True)]
        edges = [edge + half * cross(spin, edge) for edge in at_start]
        reach = reach + (angle + angle**2) * norm(h)
    swept = motion.position + half * velocity, half * velocity, edges, reach
    leaves, structure = jax.tree.flatten(jax.lax.stop_gradient(swept))
    packed = computed_once(jnp.stack([values.ravel() for values in leaves]))
    members = velocity.x[0].size
    sides = rounds(len(bodies.kinds)) if near is None else (near.first, near.second)

    def test(chosen: jax.Array, candidates: jax.Array) -> jax.Array:
        pair, member = jnp.divmod(chosen, members)
        # A body without a partner is no candidate.
        one, other = (
            jax.tree.unflatten(structure, list(computed_once(jnp.take(packed, place, axis=1, mode="clip"))))
            for place in (jnp.asarray(side.ravel())[pair] * members + member for side in sides)
        )
        edges = each(lambda *parts: jnp.stack(parts), one[1] - other[1], *one[2], *other[2])
        return _farther(one[0] - other[0], edges, one[3] + other[3], candidates)

    flat = candidates.ravel()
    if flat.size <= BATCH or is_for_accelerators() or (near is not None and not edges):
        # XLA compiles the steps of a small scene to one function, twice as fast, if they have no batches.
        return test(jnp.arange(flat.size), flat).reshape(candidates.shape)

    def test_batch(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        untested, passed = carry
        is_candidate, chosen = jax.lax.top_k(untested.astype(jnp.float32), max(BATCH, flat.size // BATCH))
        separated = test(chosen, is_candidate > 0)
        return untested.at[chosen].set(False), passed.at[chosen].set(passed[chosen] | separated)

    # Few pairs are candidates: a loop over all pairs would take most of a step.
    passed = jax.lax.while_loop(lambda carry: jnp.any(carry[0]), test_batch, (flat, jnp.zeros_like(flat)))[1]
    return passed.reshape(candidates.shape)


def _farther(center: Vector, sides: Vector, limit: jax.Array, candidates: jax.Array) -> jax.Array:
    """Return which polytopes ``center + sum_i c_i sides_i``, c in [-1, 1], are farther from the origin than a limit.

    An axis along which a polytope is beyond the limit is a proof. Candidates are the normals of the faces, cross
    products of two sides, and the direction of the nearest point, by coordinate descent: if that is on an edge or a
    corner, all c but one are at their bounds, and descent ends; if it is in a face, its normal is among the candidates.
    """
    size = jnp.sum(norm(sides), axis=0)
    limit = limit + ROUNDINGS * jnp.finfo(limit.dtype).eps * (norm(center) + size)
    center, sides, limit, near = computed_once((center, sides, limit, limit + TOUCHING * size))
    count = sides.x.shape[0]
    first, second = np.triu_indices(count, 1)
    last = len(first) + SWEEPS * count

    def try_axis(carry: tuple) -> tuple:
        nearest, weights, separated, _, index = carry
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
        # Term by term: a reduction takes longer than the rest of this loop.
        extents = (jnp.abs(dot(each(lambda values, i=i: values[i], sides), axis)) for i in range(count))
        separation = jnp.abs(dot(center, axis)) - functools.reduce(operator.add, extents)
        separated = separated | (separation > limit * norm(axis))
        undecided = candidates & ~separated & (dot(nearest, nearest) > near**2)
        return computed_once((nearest, weights, separated, jnp.any(undecided), index + 1))

    def unfinished(carry: tuple) -> jax.Array:
        return carry[3] & (carry[4] < last)

    start = center, jnp.zeros_like(sides.x), jnp.zeros_like(candidates), jnp.any(candidates), jnp.int32(0)
    return candidates & jax.lax.while_loop(unfinished, try_axis, start)[2]
