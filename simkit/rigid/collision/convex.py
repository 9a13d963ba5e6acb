"""Contact points of any two convex shapes: the axis of least overlap or nearest points, and the points of a flat patch.

With u in the unit form of a shape (`simkit.rigid.shapes.form.Form`), its points are ``x + R S u``, S its half lengths.
The nearest points of two shapes minimize ``|a - b|^2 / 2`` subject to the constraints of both forms, a convex problem
that a fixed number of steps of an interior-point method solves. Shapes that overlap are first moved apart along the
best axis known, by which the nearest points give a better one:

    sep(n) = n . (x_a - x_b) - h_a(-n) - h_b(n),   n' = direction between shapes moved apart by t n,  sep(n') >= sep(n)

with the support functions h. The gap is the largest sep(n) over all unit vectors: the distance, or the least overlap.
At the solution its derivatives, and those of normal and nearest points, follow from one more step of the method, whose
equations are smooth; so no derivative passes through the search. For convex shapes with a differentiable interior-point
method see Tracy, Howell and Manchester (2022), arXiv:2207.00669.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.collision.points import FAR, Placed, Points
from simkit.rigid.shapes.form import Form, arrays_of

# Points of a pair: the nearest ones, and four on the rim of the patch on which flat sides meet.
SLOTS = 5
# Searches for the axis, beside one for the middle of a patch, and interior-point steps of each.
SEARCHES, STEPS = 3, 16
# Distance by which shapes are moved apart, relative to the size of the smaller one: the error of the axis falls by
# about this factor, plus the relative overlap, in each search.
CLEARANCE = 0.02
# Products of slacks and multipliers at which a search ends, relative to the squared distance: near where round-off
# ends progress. With that of the center, sides tilted by up to a thousandth meet flat.
END, COARSE_END, CENTRAL_END = 1e-8, 1e-4, 0.05
# Least stiffness of a direction in which points can move, without which round-off in the others would be larger than
# their displacement; the points where a search ends do not depend on it.
SOFTEST = 1e-6
# Steps that make the derivative of the axis that of its own fixed point.
REFINED = 4
# Cosine of the angle to the axis up to which a side counts as flat on the other, and least part of the size of a patch.
FLAT, PATCH = 0.99, 0.05


class _Problem(NamedTuple):
    """Two shapes in units of the smaller one: arrays (3, [rows or corners,] sides, pairs, ...)."""

    apart: jax.Array
    frame: jax.Array
    axes: jax.Array
    half: jax.Array
    rows: jax.Array
    corners: jax.Array
    round: jax.Array


class _Iterate(NamedTuple):
    """Points of the forms (3, sides, pairs, ...), slacks and multipliers of their constraints (rows + 1, ...)."""

    points: jax.Array
    slack: jax.Array
    force: jax.Array


def convex_convex(a: Placed, b: Placed, forms: tuple[tuple[Form, ...], tuple[Form, ...]], flat: np.ndarray) -> Points:
    """Return the contact points of pairs of convex shapes.

    Of shapes that overlap by much of their size, the axis may be one of several that are locally best; the overlap is
    then never underestimated.

    Args:
        a: the first shapes, (pairs, ...).
        b: the second ones.
        forms: of the first and of the second shapes, one for each pair.
        flat: for which pairs to add the points on the rim of a flat patch, (pairs,) bool.

    Returns:
        Points with `SLOTS` slots, or one where no pair has a patch. The first is midway between the nearest points,
        or the deepest; those of the patch have gaps along the same normal, and `FAR` where no flat sides meet.

    Raises:
        UserError: in single precision, which does not resolve the axis.
    """
    if a.radius.dtype != jnp.float64:
        # In single precision, gaps were wrong by up to a hundredth of the size.
        raise UserError(
            "contact of a cylinder, an ellipsoid or a mesh with another body needs double precision; set precision = "
            "'float64' under [run], or jax.config.update('jax_enable_x64', True) in Python"
        )
    size, problem = _problem(a, b, forms)
    frozen = jax.lax.stop_gradient(problem)
    axis, moved, last, end, center = computed_once(_searched(frozen))
    _, weights, push = jax.lax.stop_gradient(_linear(frozen, last, end))
    # The nearest points after one more step, of a system that depends on the placement alone.
    middle = _inverse(*_identity_plus(_around(problem.frame, weights)))
    base = problem.apart + _difference(problem, last.points) + _difference(problem, _times(weights, push))
    normal = axis
    between = base
    for _ in range(REFINED):
        between = _times(middle, base + moved * normal)
        normal = between / jnp.sqrt(jnp.sum(between * between, axis=0))
    # Of deep overlaps the steps need not converge; the axis of the search then keeps its value.
    refined = jax.lax.stop_gradient(normal)
    axis = jnp.where(_separation(frozen, refined) > _separation(frozen, axis), refined, axis)
    normal = axis + (normal - jax.lax.stop_gradient(normal))
    sides = _sides(between)
    points = last.points + _times(weights, push - sides * _seen(problem.frame, between))
    points = jax.lax.stop_gradient(last.points) + (points - jax.lax.stop_gradient(points))
    arms = jnp.sum(problem.frame * points[None], axis=1)
    gap = jnp.sum(jax.lax.stop_gradient(normal) * (problem.apart + arms[:, 0] - arms[:, 1]), axis=0)
    gap = _separation(frozen, axis) + (gap - jax.lax.stop_gradient(gap))
    first = _packed(a.position) + size * arms[:, 0]
    gap = size * gap - (a.radius + b.radius)
    place = first - a.radius * normal - gap / 2 * normal
    nearest = Points(position=_vector(place[:, None]), normal=_vector(normal[:, None]), gap=gap[None])
    if not flat.any():
        return nearest
    patch = _patch(problem, frozen, axis, center)
    has_patch = (patch[1] < FAR) & flat.reshape(-1, *(1,) * (gap.ndim - 1))
    gaps = jnp.where(has_patch, size * patch[1] - (a.radius + b.radius), FAR)
    # Between the middles of the cores; of round shapes moved to the middle of the gap.
    places = _packed(a.position)[:, None] + size * patch[0] + (b.radius - a.radius) / 2 * normal[:, None]
    return Points(
        position=_vector(jnp.concatenate([place[:, None], places], axis=1)),
        normal=_vector(jnp.broadcast_to(normal[:, None], (3, SLOTS, *gap.shape))),
        gap=jnp.concatenate([gap[None], gaps]),
    )


def _packed(a: Vector) -> jax.Array:
    return jnp.stack([a.x, a.y, a.z])


def _vector(values: jax.Array) -> Vector:
    return Vector(values[0], values[1], values[2])


def _problem(a: Placed, b: Placed, forms: tuple[tuple[Form, ...], tuple[Form, ...]]) -> tuple[jax.Array, _Problem]:
    like = a.radius + b.radius
    rows, corners, roundness = (
        jnp.asarray(values, like.dtype).reshape(*values.shape, *(1,) * (like.ndim - 1)) for values in arrays_of(*forms)
    )

    def both(of: object) -> jax.Array:
        return jnp.stack([jnp.broadcast_to(_packed(of(side)), (3, *like.shape)) for side in (a, b)], axis=1)  # type: ignore[operator]

    half = both(lambda side: side.half_lengths)
    axes = jnp.stack([both(lambda side, k=k: axes_of(side.orientation)[k]) for k in range(3)], axis=1)
    radius = jnp.stack([a.radius + 0 * like, b.radius + 0 * like])
    size = jax.lax.stop_gradient(jnp.min(jnp.sqrt(jnp.sum(half * half, axis=0)) + radius, axis=0))
    apart = (_packed(a.position) - _packed(b.position)) / size
    return size, _Problem(apart, axes * half[None] / size, axes, half / size, rows, corners, roundness)


def _sides(like: jax.Array) -> jax.Array:
    """Return 1 for the first and -1 for the second side, to broadcast against (3, sides, pairs, ...)."""
    return jnp.asarray([1, -1], like.dtype).reshape(2, *(1,) * (like.ndim - 1))


def _seen(frame: jax.Array, a: jax.Array) -> jax.Array:
    """Return vectors of the world (3, pairs, ...) in the frames of both sides."""
    return jnp.sum(frame * a[:, None, None], axis=0)


def _difference(problem: _Problem, points: jax.Array) -> jax.Array:
    """Return the first of two points in the frames of both sides less the second, in the world."""
    arms = jnp.sum(problem.frame * points[None], axis=1)
    return arms[:, 0] - arms[:, 1]


# Symmetric matrices: (xx, yy, zz) and (yz, zx, xy).
type _Symmetric = tuple[jax.Array, jax.Array]


def _times(matrix: _Symmetric, a: jax.Array) -> jax.Array:
    d, r = matrix
    return jnp.stack(
        [
            d[0] * a[0] + r[2] * a[1] + r[1] * a[2],
            r[2] * a[0] + d[1] * a[1] + r[0] * a[2],
            r[1] * a[0] + r[0] * a[1] + d[2] * a[2],
        ]
    )


def _inverse(d: jax.Array, r: jax.Array) -> _Symmetric:
    (xx, yy, zz), (yz, zx, xy) = d, r
    a, b, c = yy * zz - yz * yz, zx * yz - xy * zz, xy * yz - yy * zx
    scale = 1 / (xx * a + xy * b + zx * c)
    diagonal = jnp.stack([a, xx * zz - zx * zx, xx * yy - xy * xy])
    return scale * diagonal, scale * jnp.stack([zx * xy - xx * yz, c, b])


def _identity_plus(matrix: _Symmetric) -> _Symmetric:
    return matrix[0] + 1, matrix[1]


def _products(one: jax.Array, other: jax.Array) -> _Symmetric:
    """Return the symmetric part of sums of products of components, (3, terms, ...)."""

    def of(i: int, j: int) -> jax.Array:
        return jnp.sum(one[i] * other[j], axis=0)

    return jnp.stack([of(0, 0), of(1, 1), of(2, 2)]), jnp.stack([of(1, 2), of(2, 0), of(0, 1)])


def _around(frame: jax.Array, matrix: _Symmetric) -> _Symmetric:
    """Return the sum over both sides of matrices of the bodies in the world."""
    turned = [_times(matrix, frame[i]) for i in range(3)]

    def of(i: int, j: int) -> jax.Array:
        return jnp.sum(frame[i] * turned[j], axis=(0, 1))

    return jnp.stack([of(0, 0), of(1, 1), of(2, 2)]), jnp.stack([of(1, 2), of(2, 0), of(0, 1)])


def _support(corners: jax.Array, roundness: jax.Array, along: jax.Array) -> jax.Array:
    """Return the support function of forms in directions of their frames, (3, ...)."""
    return jnp.max(jnp.sum(corners * along[:, None], axis=0), axis=0) + jnp.sqrt(jnp.sum(roundness * along**2, axis=0))


def _separation(problem: _Problem, axis: jax.Array) -> jax.Array:
    along = _seen(problem.frame, axis)
    along = -along * _sides(along[0])
    return jnp.sum(axis * problem.apart, axis=0) - jnp.sum(_support(problem.corners, problem.round, along), axis=0)


def _unit(a: jax.Array) -> jax.Array:
    squared = jnp.sum(a * a, axis=0)
    return a / jnp.sqrt(jnp.where(squared > 0, squared, 1))


def _first_axis(problem: _Problem) -> jax.Array:
    """Return the best of the normals of flat sides, the direction between the centers, and its round parts."""
    # Of a line or a point, normals of its missing sides are as good as any other.
    flat = problem.rows / jnp.maximum(problem.half, 1e-3)[:, None]
    normals = _unit(jnp.sum(problem.axes[:, :, None] * flat[None], axis=1)) * -_sides(flat[0, 0])
    center = _unit(problem.apart)
    across = _unit(jnp.sum(problem.axes * (problem.round * _seen(problem.axes, center))[None], axis=1))
    up = jnp.zeros_like(center).at[2].set(1)
    tried = jnp.concatenate([center[:, None], up[:, None], across, normals[:, :, 0], normals[:, :, 1]], axis=1)
    found = jax.vmap(lambda axis: _separation(problem, axis), 1)(tried)
    found = jnp.where(jnp.sum(tried * tried, axis=0) > 0.5, found, -jnp.inf)
    order = jnp.broadcast_to(jnp.arange(found.shape[0]).reshape(-1, *(1,) * (found.ndim - 1)), found.shape)
    # Sorted, not by argmax: XLA compiles a loop with a sort piece by piece, and one without to a single function, for
    # which steps of a cylinder on a box took twice as long to compile (21 and 12 s), and 30 instead of 70 us.
    best = jax.lax.sort((-found, order), dimension=0, num_keys=1)[1][:1]
    return jnp.take_along_axis(tried, best[None], axis=1)[:, 0]


def _searched(problem: _Problem) -> tuple[jax.Array, jax.Array, _Iterate, jax.Array, jax.Array]:
    """Return the axis, the distance by which shapes were moved apart along it, the iterate, and where it ended.

    The last result are points of the central path, in the middle of the patch on which flat sides meet.
    """
    first = _first_axis(problem)
    ends = [COARSE_END] * (SEARCHES - 1) + [CENTRAL_END, END]

    def search(axis: jax.Array, end: jax.Array) -> tuple[jax.Array, tuple[jax.Array, _Iterate, jax.Array]]:
        separation = _separation(problem, axis)
        moved = jnp.maximum(CLEARANCE - separation, 0)
        final = end * (separation + moved) ** 2
        apart = problem.apart + moved * axis
        iterate = _solved(problem._replace(apart=apart), final)
        tried = _unit(apart + _difference(problem, iterate.points))
        axis = jnp.where(_separation(problem, tried) > separation, tried, axis)
        return axis, (moved, iterate, final)

    # One scan, so that a search is compiled once.
    axis, results = jax.lax.scan(search, first, jnp.asarray(ends, first.dtype))
    moved, iterate, final = jax.tree.map(lambda values: values[-1], results)
    return axis, moved, iterate, final, results[1].points[-2]


def _solved(problem: _Problem, end: jax.Array) -> _Iterate:
    """Return the iterate after primal-dual steps towards products of slack and multiplier of a final size."""
    shape = problem.frame.shape[2:]
    count = problem.rows.shape[1] + 1
    one = jnp.ones((count, *shape), problem.frame.dtype)
    start = 0.3 * jnp.maximum(jnp.sqrt(jnp.sum(problem.apart**2, axis=0)), 0.01)
    begin = _Iterate(jnp.zeros((3, *shape), one.dtype), one, start * one)

    def step(iterate: _Iterate, _: None) -> tuple[_Iterate, None]:
        mean = jnp.mean(iterate.slack * iterate.force, axis=(0, 1))
        # After the end of progress, round-off would only move the iterate away.
        done = jnp.max(iterate.slack * iterate.force, axis=(0, 1)) <= 2 * end
        target = jnp.maximum(0.1 * mean, end)
        (gradient, residual, stiff), weights, push = _linear(problem, iterate, target)
        middle = _inverse(*_identity_plus(_around(problem.frame, weights)))
        between = problem.apart + _difference(problem, iterate.points + _times(weights, push))
        between = _times(middle, between)
        change = _times(weights, push - _sides(between) * _seen(problem.frame, between))
        along = jnp.sum(gradient * change[:, None], axis=0)
        slack = -residual - along
        force = target / iterate.slack - iterate.force + stiff * (residual + along)
        fastest = jnp.maximum(
            jnp.max(-slack / iterate.slack, axis=(0, 1)), jnp.max(-force / iterate.force, axis=(0, 1))
        )
        length = jnp.where(done, 0, jnp.minimum(1, 0.99 / jnp.maximum(fastest, 1e-3)))
        changes = _Iterate(change, slack, force)
        return computed_once(jax.tree.map(lambda old, new: old + length * new, iterate, changes)), None

    return jax.lax.scan(step, begin, None, length=STEPS)[0]


def _linear(
    problem: _Problem, iterate: _Iterate, target: jax.Array
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], _Symmetric, jax.Array]:
    """Return gradients, residuals and stiffness of the constraints, the compliance of each side, and its push."""
    points, slack, force = iterate
    rows = jnp.broadcast_to(problem.rows, (3, problem.rows.shape[1], *points.shape[1:]))
    gradient = jnp.concatenate([rows, 2 * (problem.round * points)[:, None]], axis=1)
    value = jnp.concatenate([jnp.sum(rows * points[:, None], axis=0), jnp.sum(problem.round * points**2, axis=0)[None]])
    residual = value - 1 + slack
    stiff = force / slack
    diagonal, rest = _products(stiff * gradient, gradient)
    weights = _inverse(diagonal + 2 * force[-1] * problem.round + SOFTEST, rest)
    push = -jnp.sum(gradient * (target / slack + stiff * residual), axis=1)
    return (gradient, residual, stiff), weights, push


def _patch(problem: _Problem, frozen: _Problem, axis: jax.Array, center: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return points relative to the first center (3, 4, pairs, ...), and gaps (4, pairs, ...), in units of the size.

    Rays leave the middle of the patch, a point of the central path, in four directions that turn with one of the
    bodies, and end where the flat side of either body ends.
    """
    arms = jnp.sum(frozen.frame * center[None], axis=1)
    # Relative to the first center, without the displacement.
    place = (arms[:, 0] + arms[:, 1] - frozen.apart) / 2
    ahead = -_sides(axis) * axis[:, None]  # from each side to the other, (3, sides, pairs, ...)
    flat, rounded = _facing(frozen, ahead, center)

    def rays(side: int) -> jax.Array:
        along = jnp.abs(jnp.sum(frozen.axes[:, :, side] * axis[:, None], axis=0))
        least = jnp.argmin(along, axis=0)
        chosen = jnp.take_along_axis(frozen.axes[:, :, side], least[None, None], axis=1)[:, 0]
        one = _unit(chosen - axis * jnp.sum(chosen * axis, axis=0))
        other = jnp.cross(axis, one, axis=0)
        return jnp.stack([one, other, -one, -other], axis=1)

    both = jnp.concatenate([rays(0), rays(1)], axis=1)  # (3, 8, pairs, ...)
    reach = jnp.min(_reach(frozen, place, both, flat, rounded), axis=1)  # (8, pairs, ...)
    is_first = jnp.sum(reach[:4], axis=0) >= jnp.sum(reach[4:], axis=0)
    reach = jnp.where(is_first, reach[:4], reach[4:])
    ray = jnp.where(is_first, both[:, :4], both[:, 4:])
    ends = jax.lax.stop_gradient(place[:, None] + 0.999 * reach * ray)
    # Points turn and move with the first body; heights are those of the moving surfaces there.
    local = jnp.sum(frozen.axes[:, :, 0, None] * ends[:, None], axis=0)
    ends = jnp.sum(problem.axes[:, :, 0, None] * local[None], axis=1)
    first = _height(problem, 0, ends, axis, flat[:, 0], rounded[0])
    second = _height(problem, 1, ends + problem.apart[:, None], axis, flat[:, 1], rounded[1])
    gap = first - second
    is_patch = (reach > PATCH) & jnp.isfinite(gap)
    ends = ends + (first + second) / 2 * axis[:, None]
    return jnp.where(is_patch, ends, 0), jnp.where(is_patch, gap, FAR)


def _facing(problem: _Problem, ahead: jax.Array, points: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return which rows (rows, sides, pairs, ...) and which round parts (sides, pairs, ...) face the other body."""
    half = jnp.maximum(problem.half, 1e-6)
    local = jnp.sum(problem.axes * ahead[:, None], axis=0)
    normals = _unit(problem.rows / half[:, None])
    outward = _unit(problem.round * points / half)
    return jnp.sum(normals * local[:, None], axis=0) > FLAT, jnp.sum(outward * local, axis=0) > FLAT


def _reach(problem: _Problem, place: jax.Array, rays: jax.Array, flat: jax.Array, rounded: jax.Array) -> jax.Array:
    """Return how far rays stay on the facing sides of the bodies, (rays, sides, pairs, ...)."""
    half = jnp.maximum(problem.half, 1e-6)
    centers = jnp.stack([jnp.zeros_like(problem.apart), -problem.apart], axis=1)
    at = jnp.sum(problem.axes * (place[:, None] - centers)[:, None], axis=0) / half
    along = jnp.sum(problem.axes[:, :, None] * rays[:, None, :, None], axis=0) / half[:, None]
    room = 1 - jnp.sum(problem.rows * at[:, None], axis=0)  # (rows, sides, pairs, ...)
    rate = jnp.sum(problem.rows[:, None] * along[:, :, None], axis=0)  # (rays, rows, sides, pairs, ...)
    ends = jnp.where((rate > 1e-9) & ~flat, jnp.maximum(room, 0) / jnp.where(rate > 1e-9, rate, 1), jnp.inf)
    a = jnp.sum(problem.round[:, None] * along**2, axis=0)
    b = jnp.sum(problem.round[:, None] * along * at[:, None], axis=0)
    c = jnp.minimum(jnp.sum(problem.round * at**2, axis=0) - 1, 0)
    # A ray along a round side leaves it where the side has curved away by a thousandth.
    c, b = jnp.where(rounded, -1e-3, c), jnp.where(rounded, 0, b)
    safe = jnp.where(a > 1e-9, a, 1)
    curved = jnp.where(a > 1e-9, (-b + jnp.sqrt(b * b - a * c)) / safe, jnp.inf)
    faces = jnp.any(flat, axis=0) | rounded
    found = jnp.minimum(jnp.min(ends, axis=1), curved)
    return jnp.where(faces & jnp.isfinite(found), found, 0)


def _height(
    problem: _Problem, side: int, ends: jax.Array, axis: jax.Array, flat: jax.Array, rounded: jax.Array
) -> jax.Array:
    """Return the height along the axis at which lines through points, relative to the center, meet the facing side."""
    half = jnp.maximum(problem.half[:, side], 1e-6)
    turn = problem.axes[:, :, side]
    at = jnp.sum(turn[:, :, None] * ends[:, None], axis=0) / half[:, None]
    along = jnp.sum(turn * axis[:, None], axis=0) / half
    rows, sign = problem.rows[:, :, side], 1 if side == 0 else -1
    rate = jnp.sum(rows * along[:, None], axis=0)
    room = 1 - jnp.sum(rows[:, :, None] * at[:, None], axis=0)  # (rows, rays, pairs, ...)
    planes = jnp.where(flat[:, None], room / jnp.where(flat, rate, 1)[:, None], -sign * jnp.inf)
    plane = jnp.max(planes, axis=0) if side == 0 else jnp.min(planes, axis=0)
    roundness = problem.round[:, side]
    a = jnp.sum(roundness * along**2, axis=0)
    b = jnp.sum(roundness[:, None] * along[:, None] * at, axis=0)
    c = jnp.sum(roundness[:, None] * at**2, axis=0) - 1
    inside = b * b - a * c
    real = rounded & (inside > 0)
    curve = (-b - sign * jnp.sqrt(jnp.where(real, inside, 1))) / jnp.where(rounded, a, 1)
    return jnp.where(rounded, jnp.where(real, curve, sign * jnp.inf), plane)
