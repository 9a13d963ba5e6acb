"""Contact points of capsules against capsules and boxes."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, cross, dot, each, perpendicular, select
from simkit.rigid.collision.points import Placed, Points, along_slots, clamp, cyclic, in_slots, midway, sign
from simkit.rigid.collision.spheres import ROUNDING, along, axes_of_frame, between_balls

# Bounds on (sine of the angle times length over radius)^2: lines count as parallel below the first, as crossing above
# the second. In between the two points move together, which overestimates the least gap by at most 0.074 times the
# second, 0.15 % of the radius.
PARALLEL, CROSSING = 2e-3, 2e-2
# Lower bound of the squared sine in the division for the nearest points of two lines; parallel lines have less.
LEAST_SINE_SQUARED = 1e-8
# Sine of the angle to a face's normal below which a capsule touches that face and not one of its edges: the gap along
# the normal of the face then differs from the distance of the axis by half the square of this, 0.13 %.
FACE_SINE = 0.05
# Component of a unit vector below which a line counts as parallel to the sides of a slab of a box.
ALONG = 1e-6
# Relative widening of a slab, so that a line on its border lies inside in spite of rounding.
WIDER = 1e-4


def capsule_capsule(a: Placed, b: Placed) -> Points:
    """Return the contact points of capsules: the nearest points of their axes, twice, or both ends if parallel.

    Args:
        a: the first of each pair, (pairs, ...).
        b: the second of each pair.

    Returns:
        Points with two slots, one for each end of the second capsule.
    """
    (_, _, u), (_, _, v) = axes_of(a.orientation), axes_of(b.orientation)
    apart, cross_uv, cosine = b.position - a.position, cross(u, v), dot(u, v)
    sine_squared = dot(cross_uv, cross_uv)
    half_a, half_b = a.half_lengths.z, b.half_lengths.z
    along_u, along_v = dot(apart, u), dot(apart, v)

    # Nearest points of the lines, clamped to one segment after the other (Ericson 2005, section 5.1.9).
    s = clamp(dot(cross(apart, v), cross_uv) / jnp.maximum(sine_squared, LEAST_SINE_SQUARED), half_a)
    t = clamp(s * cosine - along_v, half_b)
    s = clamp(along_u + t * cosine, half_a)

    end = clamp(along_u + along_slots((-1, 1), s) * half_b * cosine, half_a)
    spread = _alongside(sine_squared, jnp.minimum(half_a, half_b), a.radius + b.radius)
    s = s + spread * (end - s)
    t = clamp(s * cosine - along_v, half_b)
    across, _ = perpendicular(u)
    fallback, _ = along(cross_uv, jnp.ones_like(cosine), across)
    return in_slots(between_balls(a.position + s * u, a.radius, b.position + t * v, b.radius, fallback))


def capsule_box(a: Placed, b: Placed) -> Points:
    """Return the contact points of capsules with boxes.

    Over a face, the two ends of the part of the axis that lies over it; along an edge, the two ends of the part beside
    it; else the nearest point, twice. A capsule whose axis enters a box is pushed out through a face.

    Args:
        a: the capsules, (pairs, ...).
        b: the boxes.

    Returns:
        Points with two slots, one for each end of the capsule.
    """
    _, _, axis = axes_of(a.orientation)
    axis, center = computed_once((unrotate(b.orientation, axis), unrotate(b.orientation, a.position - b.position)))
    half, halves = a.half_lengths.z, b.half_lengths
    frame = axes_of_frame(half)

    nearest = computed_once(_nearest(center, axis, half, halves))
    place = center + nearest * axis
    beyond = place - each(clamp, place, halves)
    squares = each(jnp.square, beyond)
    squared = squares.x + squares.y + squares.z
    outside = squared > (ROUNDING * a.radius) ** 2

    # The face: inside the box that of the least overlap, outside that of the largest excess.
    overlap = each(lambda h, u, c: h + jnp.abs(u) * half - jnp.abs(c), halves, axis, center)
    rank = select(outside, -squares, overlap)
    face, _, _ = cyclic((rank.x <= rank.y) & (rank.x <= rank.z), rank.y <= rank.z, *frame)
    over_face = ~outside | (squared - dot(face, squares) < FACE_SINE**2 * squared)
    # The edge: along the axis of the least excess.
    least = (squares.x <= squares.y) & (squares.x <= squares.z), squares.y <= squares.z
    edge, _, _ = cyclic(*least, *frame)

    sideways = axis - dot(edge, axis) * edge
    spread = _alongside(dot(sideways, sideways), jnp.minimum(half, dot(edge, halves)), a.radius)
    spread = jnp.where(over_face, 1, spread)
    # The part over a face is bounded along the two other axes, the part beside an edge along the axis of the edge.
    face, over_face, spread, bounding_edge = computed_once((face, over_face, spread, edge))
    bounding = select(over_face, Vector(1 - face.x, 1 - face.y, 1 - face.z), bounding_edge)
    ends = along_slots((-1, 1), half)
    end = ends * half
    for c, u, h, x, is_bounded in zip(*map(_components, (center, axis, halves, place, bounding)), strict=True):
        runs_along = jnp.abs(u) < ALONG
        slope = jnp.where(runs_along, 1, u)
        reach = jnp.maximum(h, jnp.abs(x)) * (1 + WIDER)
        border = (ends * reach * sign(slope) - c) / slope
        bound = jnp.where(runs_along | (is_bounded == 0), end, border)
        end = jnp.where(ends > 0, jnp.minimum(end, bound), jnp.maximum(end, bound))
    end = computed_once(end)
    point = center + (nearest + spread * (end - nearest)) * axis

    side = sign(dot(face, select(outside, beyond, center)))
    apart = point - each(clamp, point, halves)
    normal, distance = along(apart, a.radius, side * face)
    normal = select(over_face, side * face, normal)
    distance = jnp.where(over_face, side * dot(face, point) - dot(face, halves), distance)
    gap = distance - a.radius
    position = b.position + rotate(b.orientation, midway(point - a.radius * normal, normal, gap))
    return in_slots(Points(position=position, normal=rotate(b.orientation, normal), gap=gap))


def _alongside(sine_squared: jax.Array, length: jax.Array, radius: jax.Array) -> jax.Array:
    """Return 1 for parallel lines, 0 for crossing ones, and a linear transition in between."""
    spreading = sine_squared * length**2 / radius**2
    return jnp.clip((CROSSING - spreading) / (CROSSING - PARALLEL), 0, 1)


def _nearest(center: Vector, axis: Vector, half: jax.Array, halves: Vector) -> jax.Array:
    """Return the point of a segment nearest to a box, as its coordinate in m from the center of the segment.

    Half the derivative of the squared distance, ``axis . (x - clamp(x))``, is a piecewise linear, increasing function
    along the segment, with breakpoints at the sides of the slabs. Its zero lies between the last breakpoint where it
    is not positive and the first where it is not negative.

    Args:
        center: of the segment, in the frame of the box, in m.
        axis: unit vector along it.
        half: its half length in m.
        halves: those of the box in m.
    """

    def slope(along: jax.Array) -> jax.Array:
        place = center + along * axis
        return dot(axis, place - each(clamp, place, halves))

    sides = along_slots((-1, 1), half)
    low, high = -half, half
    for c, u, h in zip(*map(_components, (center, axis, halves)), strict=True):
        border = clamp((sides * h - c) / jnp.where(jnp.abs(u) < ALONG, 1, u), half)
        rising = slope(border)
        low = jnp.maximum(low, jnp.max(jnp.where(rising <= 0, border, -half), axis=0))
        high = jnp.minimum(high, jnp.min(jnp.where(rising >= 0, border, half), axis=0))
    low, high = computed_once((low, high))
    low = jnp.where(slope(half) <= 0, half, low)
    high = jnp.where(slope(-half) >= 0, -half, high)
    below, above = slope(low), slope(high)
    between = (low < high) & (below < above)
    part = -below / jnp.where(between, above - below, 1)
    return jnp.where(between, low + part * (high - low), (low + high) / 2)


def _components(a: Vector) -> tuple[jax.Array, jax.Array, jax.Array]:
    return a.x, a.y, a.z
