"""Contact manifold of two boxes: face on face, or edge on edge."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, select
from simkit.rigid.collision.overlay import Overlay, common_corners, deepest_corner
from simkit.rigid.collision.points import Placed, Points
from simkit.rigid.collision.separation import Axes, Choice, best_axes, preference
from simkit.rigid.collision.slots import FAR, along_slots, clamp, cyclic, in_slots, sign


def box_box(a: Placed, b: Placed) -> Points:
    """Return the contact points of boxes.

    The axis of the largest separation decides (see `simkit.rigid.collision.separation.best_axes`). If it is the normal
    of a face, that is the reference face; the most antiparallel face of the other box is the incident face. Projected
    along the normal, the two faces overlap in a polygon; each slot has the corner of it that lies farthest in the
    direction of the slot, and several slots may have the same corner. Gaps are measured along the normal from the
    reference face. If the axis is the cross product of two edges, they touch at one point, in the first slot. Where the
    faces are shifted so far that the polygon lacks the deepest corner of the incident face, the first slot has the
    nearest points of the edges or that corner, whichever separates better: its gap is the separation, at most the
    distance of the boxes.

    Args:
        a: the first of each pair, (pairs, ...).
        b: the second of each pair.

    Returns:
        Points with four slots.
    """
    axes_a, axes_b = computed_once((axes_of(a.orientation), axes_of(b.orientation)))
    choice = best_axes(a.position - b.position, axes_a, a.half_lengths, axes_b, b.half_lengths)
    faces, corner = _face_on_face(a, axes_a, b, axes_b, choice)
    missed = jnp.min(faces.gap, axis=0) > corner.gap + preference(a.half_lengths, b.half_lengths)
    of_edges = choice.edges_clearly | (missed & choice.edges_win)
    of_edges, single = computed_once((of_edges, of_edges | missed))
    edges = _edge_on_edge(a, axes_a, b, axes_b, choice, of_edges)
    one = Points(
        position=select(of_edges, edges.position, corner.position),
        normal=select(of_edges, edges.normal, corner.normal),
        gap=jnp.where(of_edges, edges.gap, corner.gap),
    )
    first_slot = along_slots((1, 0, 0, 0), a.radius) > 0
    return in_slots(
        Points(
            position=select(single, one.position, faces.position),
            normal=one.normal,
            gap=jnp.where(single, jnp.where(first_slot, one.gap, FAR), faces.gap),
        )
    )


def _edge_on_edge(a: Placed, axes_a: Axes, b: Placed, axes_b: Axes, choice: Choice, of_edges: jax.Array) -> Points:
    """Return the nearest points of the two edges that face each other along the cross product of their directions."""
    is_a, is_b = ([edge == number for number in range(3)] for edge in choice.edges)
    u, _, _ = cyclic(is_a[0], is_a[1], *axes_a)
    v, _, _ = cyclic(is_b[0], is_b[1], *axes_b)
    cross_uv = cross(u, v)
    sine_squared = jnp.where(of_edges, dot(cross_uv, cross_uv), 1)
    normal = cross_uv / jnp.sqrt(sine_squared)
    u, v, cross_uv, sine_squared, normal = computed_once(
        (u, v, cross_uv, sine_squared, sign(dot(normal, a.position - b.position)) * normal)
    )

    def edge_middle(placed: Placed, axes: Axes, along: list[jax.Array], towards: Vector) -> Vector:
        point, halves = placed.position, placed.half_lengths
        for axis, half, is_along in zip(axes, (halves.x, halves.y, halves.z), along, strict=True):
            point = point + staged(jnp.where(is_along, 0, sign(dot(axis, towards)) * half)) * axis
        return point

    def half_length(placed: Placed, along: list[jax.Array]) -> jax.Array:
        halves = placed.half_lengths
        return jnp.where(along[0], halves.x, jnp.where(along[1], halves.y, halves.z))

    middle_a, middle_b = computed_once((edge_middle(a, axes_a, is_a, -normal), edge_middle(b, axes_b, is_b, normal)))
    between = middle_a - middle_b
    along_u = computed_once(clamp(-dot(cross(between, v), cross_uv) / sine_squared, half_length(a, is_a)))
    along_v = clamp(dot(between + along_u * u, v), half_length(b, is_b))
    position = (middle_a + along_u * u + middle_b + along_v * v) / 2
    return Points(position=position, normal=normal, gap=dot(normal, between))


def _face_on_face(a: Placed, axes_a: Axes, b: Placed, axes_b: Axes, choice: Choice) -> tuple[Points, Points]:
    """Return corners of the overlap of the reference face and the incident one, and the deepest incident corner."""
    swap = choice.second
    reference = tuple(select(swap, one, other) for one, other in zip(axes_b, axes_a, strict=True))
    incident = tuple(select(swap, one, other) for one, other in zip(axes_a, axes_b, strict=True))
    reference_halves = select(swap, b.half_lengths, a.half_lengths)
    incident_halves = select(swap, a.half_lengths, b.half_lengths)
    origin, towards = select(swap, b.position, a.position), select(swap, a.position, b.position)

    # Frame of the reference face: outward normal n, u and v along its edges.
    chosen = choice.face == 0, choice.face == 1
    n, u, v = cyclic(*chosen, *reference)
    half_n, half_u, half_v = cyclic(*chosen, reference_halves.x, reference_halves.y, reference_halves.z)
    apart = towards - origin
    n, u, v = computed_once((sign(dot(n, apart)) * n, u, v))

    # Frame of the incident face: outward normal m, opposed to n, p and q along its edges.
    reference_halves, incident_halves, origin, apart = staged((reference_halves, incident_halves, origin, apart))
    x, y, z = (jnp.abs(dot(n, one)) for one in incident)
    chosen = computed_once(((x >= y) & (x >= z), y >= z))
    m, p, q = cyclic(*chosen, *incident)
    half_m, half_p, half_q = cyclic(*chosen, incident_halves.x, incident_halves.y, incident_halves.z)
    m, p, q, half_m, half_p, half_q = staged((-sign(dot(m, n)) * m, p, q, half_m, half_p, half_q))
    center = apart + half_m * m

    def components(w: Vector) -> Vector:
        return Vector(dot(w, u), dot(w, v), dot(w, n))

    overlay = computed_once(
        Overlay(
            half_u=half_u,
            half_v=half_v,
            center=components(center),
            normal=components(m),
            p=half_p * components(p),
            q=half_q * components(q),
        )
    )
    normal = jnp.where(swap, 1, -1).astype(half_n.dtype) * n

    def points(at: Vector) -> Points:
        at = staged(at)
        position = origin + at.x * u + at.y * v + (at.z + half_n) / 2 * n
        return Points(position=position, normal=normal, gap=at.z - half_n)

    return points(common_corners(overlay)), points(deepest_corner(overlay))
