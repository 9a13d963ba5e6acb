"""Corners of the overlap of two box faces, projected along the normal of one of them."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.collision.slots import FAR, along_slots, clamp, sign

# Directions of the four slots within the reference face: its diagonals, slightly rotated, so that an incident face
# turned by 45 degrees has a definite corner for each.
DIRECTIONS_U, DIRECTIONS_V = (1.1, -0.9, -1.1, 0.9), (0.9, 1.1, -0.9, -1.1)
# Weight of the slope of the incident face in these directions: at slopes above about 1/3 all slots prefer the deepest
# points, on nearly parallel faces each keeps its corner.
DOWNHILL = 4.0
# Relative widening of faces, so that flush faces have corners in spite of rounding.
WIDER = 1e-4
# Ratio of components below which an edge counts as parallel to another.
ALONG = 1e-6


@pytree
class Overlay:
    """A reference and an incident face, in the frame u, v, n of the reference face with origin at its body's center.

    Attributes:
        half_u: half length of the reference face along u in m.
        half_v: half length of the reference face along v in m.
        center: center of the incident face in m.
        normal: unit normal of the incident face.
        p: from the center of the incident face to the middle of an edge, in m.
        q: from the center of the incident face to the middle of an adjacent edge, in m.
    """

    half_u: jax.Array
    half_v: jax.Array
    center: Vector
    normal: Vector
    p: Vector
    q: Vector


def common_corners(overlay: Overlay) -> Vector:
    """Return a corner of the overlap polygon for each of four slots, on the incident face.

    Candidates are the corners of the incident face inside the reference face, and the ends of the parts of the
    reference edges inside the incident face. Each slot has the candidate farthest in its direction.

    Args:
        overlay: the two faces.

    Returns:
        Corners (4, pairs, ...) in the frame of the reference face in m, at height `FAR` if the faces do not overlap.
    """
    half_u, half_v, center, p, q = overlay.half_u, overlay.half_v, overlay.center, overlay.p, overlay.q
    slope_u, slope_v = -overlay.normal.x / overlay.normal.z, -overlay.normal.y / overlay.normal.z
    toward_u = along_slots(DIRECTIONS_U, half_u) - DOWNHILL * slope_u
    toward_v = along_slots(DIRECTIONS_V, half_v) - DOWNHILL * slope_v
    corners = [(center + side_p * p + side_q * q) for side_p, side_q in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
    wide_u, wide_v = half_u * (1 + WIDER), half_v * (1 + WIDER)
    area = jnp.abs(p.x * q.y - p.y * q.x) * (1 + WIDER)

    def clipped(across: jax.Array, middle: jax.Array, sides: tuple, half: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the ends of the part of a reference edge inside the incident face."""
        low, high = -half, half
        for one_across, one_along in sides:
            safe = jnp.where(jnp.abs(one_across) < ALONG * half, ALONG * half, one_across)
            at, reach = staged((middle + one_along / safe * across, area / jnp.abs(safe)))
            low, high = jnp.maximum(low, at - reach), jnp.minimum(high, at + reach)
        return low, high

    candidates = [(c.x, c.y, (jnp.abs(c.x) <= wide_u) & (jnp.abs(c.y) <= wide_v)) for c in corners]
    for side in (1, -1):
        low, high = clipped(side * half_u - center.x, center.y, ((p.x, p.y), (q.x, q.y)), half_v)
        low, high = computed_once((low, high))
        candidates.append((side * half_u, jnp.where(toward_v > 0, high, low), low <= high))
        low, high = clipped(side * half_v - center.y, center.x, ((p.y, p.x), (q.y, q.x)), half_u)
        low, high = computed_once((low, high))
        candidates.append((jnp.where(toward_u > 0, high, low), side * half_v, low <= high))

    best, u, v = (jnp.full_like(toward_u, value) for value in (-FAR, 2 * FAR, 0))
    for at_u, at_v, exists in candidates:
        score = jnp.where(exists, toward_u * at_u + toward_v * at_v, -FAR)
        wins = score > best
        best, u, v = jnp.maximum(score, best), jnp.where(wins, at_u, u), jnp.where(wins, at_v, v)
    u, v = computed_once((u, v))
    exists = u < FAR
    u = jnp.where(exists, u, 0)
    n = jnp.where(exists, center.z + slope_u * (u - center.x) + slope_v * (v - center.y), FAR)
    return computed_once(Vector(u, v, n))


def deepest_corner(overlay: Overlay) -> Vector:
    """Return the deepest corner of the incident face, (pairs, ...), with u and v clamped to the reference face."""
    corner = overlay.center - sign(overlay.p.z) * overlay.p - sign(overlay.q.z) * overlay.q
    return Vector(clamp(corner.x, overlay.half_u), clamp(corner.y, overlay.half_v), corner.z)
