"""Contact points of two boxes: the axis of separation, the overlap of two faces, and the points on it."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, select
from simkit.rigid.collision.points import FAR, Placed, Points, along_slots, clamp, cyclic, in_slots, sign

type Axes = tuple[Vector, Vector, Vector]

# Squared sine of the angle of two edges below which their cross product is not tried: face normals then suffice.
PARALLEL = 1e-4
# Margin, relative to the smallest half length, by which a face of the second box must be better than one of the first,
# and edges better than faces, so that rounding does not decide between axes that tie.
PREFERENCE = 0.01
# Bit offset and number of bits of each field of a `Choice` packed into one integer.
OFFSETS, BITS = (0, 1, 3, 7, 8), (1, 2, 4, 1, 1)


@pytree
class Choice:
    """Axes of the largest separation of two boxes.

    Attributes:
        second: whether the best face is one of the second box, bool.
        face: index of the axis of that face, 0 to 2.
        edges: indices of the axes of the best two edges, of the first box and of the second, 0 to 2.
        edges_win: whether the edges separate better than the face, bool.
        edges_clearly: whether they do so by more than the margin `preference`, bool.
    """

    second: jax.Array
    face: jax.Array
    edges: tuple[jax.Array, jax.Array]
    edges_win: jax.Array
    edges_clearly: jax.Array


def preference(first: Vector, second: Vector) -> jax.Array:
    """Return the margin in m by which another axis must be better than a face of the first box.

    Args:
        first: half lengths in m.
        second: half lengths of the other box in m.
    """
    return PREFERENCE * jnp.minimum(_least(first), _least(second))


def best_axes(apart: Vector, a: Axes, first: Vector, b: Axes, second: Vector) -> Choice:
    """Return the axes of the largest separation; a discrete choice without derivative.

    Along a unit vector l the separation of boxes with axes a_i, b_j and half lengths g_i, h_j is

    ``|d . l| - sum_i g_i |a_i . l| - sum_j h_j |b_j . l|``

    and boxes are apart if it is positive for one of a_i, b_j or a_i x b_j (Gottschalk, Lin & Manocha 1996,
    doi:10.1145/237170.237244).

    Args:
        apart: d, from the center of the second box to that of the first, in m.
        a: unit vectors along the axes of the first box.
        first: g in m.
        b: unit vectors along the axes of the second box.
        second: h in m.
    """
    apart, a, first, b, second = jax.lax.stop_gradient((apart, a, first, b, second))
    g, h = (first.x, first.y, first.z), (second.x, second.y, second.z)
    cosine = [[dot(one, other) for other in b] for one in a]
    size = [[jnp.abs(value) for value in row] for row in cosine]
    along_a, along_b = [dot(apart, axis) for axis in a], [dot(apart, axis) for axis in b]

    def of_first(i: int) -> jax.Array:
        return jnp.abs(along_a[i]) - g[i] - (h[0] * size[i][0] + h[1] * size[i][1] + h[2] * size[i][2])

    def of_second(j: int) -> jax.Array:
        return jnp.abs(along_b[j]) - h[j] - (g[0] * size[0][j] + g[1] * size[1][j] + g[2] * size[2][j])

    def of_edges(i: int, j: int) -> jax.Array:
        # With unit vectors, a_k . (a_i x b_j) is a cosine of another pair.
        i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        sine_squared = cosine[i1][j] ** 2 + cosine[i2][j] ** 2
        distance = jnp.abs(along_a[i2] * cosine[i1][j] - along_a[i1] * cosine[i2][j])
        reach = g[i1] * size[i2][j] + g[i2] * size[i1][j] + h[j1] * size[i][j2] + h[j2] * size[i][j1]
        separation = (distance - reach) / jnp.sqrt(jnp.maximum(sine_squared, PARALLEL))
        return jnp.where(sine_squared > PARALLEL, separation, -jnp.inf)

    best_a, number_a = _largest([of_first(i) for i in range(3)])
    best_b, number_b = _largest([of_second(j) for j in range(3)])
    best_edges, edges = _largest([of_edges(i, j) for i in range(3) for j in range(3)])
    margin = preference(first, second)
    is_second = best_b > best_a + margin
    best = jnp.where(is_second, best_b, best_a)
    # Packed into one integer behind a barrier; otherwise each field computes all separations again.
    fields = (is_second, jnp.where(is_second, number_b, number_a), edges, best_edges > best, best_edges > best + margin)
    packed = (field.astype(jnp.int32) << offset for field, offset in zip(fields, OFFSETS, strict=True))
    code = computed_once(sum(packed, jnp.zeros_like(edges)))
    is_second, face, edges, win, clearly = (
        code >> offset & (1 << bits) - 1 for offset, bits in zip(OFFSETS, BITS, strict=True)
    )
    return Choice(
        second=is_second > 0, face=face, edges=(edges // 3, edges % 3), edges_win=win > 0, edges_clearly=clearly > 0
    )


def _largest(values: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the largest of some arrays, elementwise, and its index, the first of equals."""
    best, which = values[0], jnp.zeros_like(values[0], dtype=jnp.int32)
    for number, value in enumerate(values[1:], start=1):
        which = jnp.where(value > best, number, which)
        best = jnp.maximum(value, best)
    return best, which


def _least(a: Vector) -> jax.Array:
    return jnp.minimum(jnp.minimum(a.x, a.y), a.z)


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


def box_box(a: Placed, b: Placed) -> Points:
    """Return the contact points of boxes.

    The axis of the largest separation decides (see `simkit.rigid.collision.boxes.best_axes`). If it is the normal
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
