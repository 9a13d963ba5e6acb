"""Shapes as signed distances: elementary bodies, their unions and motions, polygons and airfoils."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.arguments import check_number, check_shape
from simkit.core.formulation import root
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.parts import part, per_axis
from simkit.core.settings import formula, several, text
from simkit.errors import UserError
from simkit.flow.grid import like

PLANE, SPACE = (2,), (3,)
# (x, y) or (x, y, z), arrays that broadcast against each other, to an array of distances.
type Shape = Callable[..., jax.Array]
type Point = tuple[jax.Array | float, ...]


def ball(center: Point, radius: jax.Array | float) -> Shape:
    """Return a circle, or a sphere in three dimensions.

        distance = |x - center| - radius

    Args:
        center: one number for each axis; with two numbers in three dimensions, a cylinder along z.
        radius: positive.

    Example:
        >>> cylinder = flow.obstacles.ball((2.0, 2.0), 0.5)
        >>> float(cylinder(3.0, 2.0)), float(cylinder(2.0, 2.0))
        (0.5, -0.5)
    """
    return lambda *x: length([a - c for a, c in zip(x, center, strict=False)]) - radius


def box(center: Point, half_lengths: Point, rounding: jax.Array | float = 0.0) -> Shape:
    """Return a rectangle, or a block in three dimensions, with rounded edges.

        q = |x - center| - half_lengths + rounding,   distance = |max(q, 0)| + min(max_i q_i, 0) - rounding

    Args:
        center: one number for each axis.
        half_lengths: from the center to each side.
        rounding: radius of the edges, at most the smallest half length.

    Raises:
        UserError: if the radius of the edges, where it is not traced, is larger.

    Example:
        >>> block = flow.obstacles.box((0.0, 0.0), (1.0, 0.5))
        >>> float(block(2.0, 0.0)), float(block(0.0, 0.0))
        (1.0, -0.5)
    """
    if not any(isinstance(size, Tracer) for size in (*half_lengths, rounding)):
        check_number("rounding", rounding, 0, float(min(half_lengths)))

    def distance(*x: jax.Array) -> jax.Array:
        q = [jnp.abs(a - c) - (b - rounding) for a, c, b in zip(x, center, half_lengths, strict=True)]
        nearest_side = q[0]
        for other in q[1:]:
            nearest_side = jnp.maximum(nearest_side, other)
        return _joined(nearest_side, length([jnp.maximum(a, 0) for a in q])) - rounding

    return distance


def superellipse(center: Point, half_axes: Point, exponent: float = 2.0) -> Shape:
    """Return an ellipse (exponent 2) or a superellipse closer to a box (4, 6, ...), in two or three dimensions.

        g = (sum of |(x - center)/half_axes|^exponent)^(1/exponent),   distance = (g - 1) min(half_axes)

    This is zero on the surface but no distance away from it; users of shapes divide by the gradient.

    Args:
        center: one number for each axis.
        half_axes: from the center to the surface along each axis.
        exponent: at least 2.

    Example:
        >>> ellipse = flow.obstacles.superellipse((0.0, 0.0), (2.0, 1.0))
        >>> float(ellipse(2.0, 0.0)), float(ellipse(0.0, 0.0))
        (0.0, -1.0)
    """

    def distance(*x: jax.Array) -> jax.Array:
        total = 0.0
        for a, c, b in zip(x, center, half_axes, strict=True):
            total = total + jnp.abs((a - c) / b) ** exponent
        away = total > 0
        g = jnp.where(away, jnp.where(away, total, 1) ** (1 / exponent), 0)
        smallest = half_axes[0]
        for b in half_axes[1:]:
            smallest = jnp.minimum(smallest, b)
        return (g - 1) * smallest

    return distance


def capsule(start: Point, end: Point, radius: jax.Array | float) -> Shape:
    """Return all points within a radius of a straight line between two points, in two or three dimensions.

    Args:
        start: one number for each axis.
        end: the other end of the line, another point.
        radius: positive.

    Example:
        >>> pill = flow.obstacles.capsule((0.0, 0.0), (2.0, 0.0), 0.5)
        >>> float(pill(1.0, 2.0)), float(pill(3.0, 0.0))
        (1.5, 0.5)
    """

    def distance(*x: jax.Array) -> jax.Array:
        along = [b - a for a, b in zip(start, end, strict=True)]
        away = [c - a for c, a in zip(x, start, strict=True)]
        passed = sum(a * b for a, b in zip(along, away, strict=True)) / sum(a**2 for a in along)
        nearest = jnp.clip(passed, 0, 1)
        return length([b - nearest * a for a, b in zip(along, away, strict=True)]) - radius

    return distance


def cylinder(center: Point, radius: jax.Array | float, half_length: jax.Array | float, axis: int = 2) -> Shape:
    """Return a circular cylinder of finite length with flat ends, in three dimensions.

    Args:
        center: three numbers.
        radius: positive.
        half_length: from the center to each end.
        axis: along which it lies, 0, 1 or 2.

    Example:
        >>> post = flow.obstacles.cylinder((0.0, 0.0, 0.0), radius=1.0, half_length=2.0)
        >>> float(post(3.0, 0.0, 0.0)), float(post(0.0, 0.0, 2.5))
        (2.0, 0.5)
    """

    def distance(*x: jax.Array) -> jax.Array:
        arm = [a - c for a, c in zip(x, center, strict=True)]
        across = length([a for i, a in enumerate(arm) if i != axis]) - radius
        along = jnp.abs(arm[axis]) - half_length
        outside = length([jnp.maximum(across, 0), jnp.maximum(along, 0)])
        return _joined(jnp.maximum(across, along), outside)

    return distance


def half_space(point: Point, normal: Point) -> Shape:
    """Return the half-space behind a plane (a line in two dimensions).

    Args:
        point: on the plane.
        normal: unit vector out of the body.

    Example:
        >>> ground = flow.obstacles.half_space((0.0, 0.0), (0.0, 1.0))
        >>> float(ground(5.0, 2.0))
        2.0
    """

    def distance(*x: jax.Array) -> jax.Array:
        total = jnp.zeros(())
        for a, p, n in zip(x, point, normal, strict=True):
            total = total + (a - p) * n
        return total

    return distance


def union(*shapes: Shape, smoothing: jax.Array | float = 0.0) -> Shape:
    """Return the union of shapes.

    Args:
        *shapes: one or more.
        smoothing: length over which concave edges between two shapes are filled; 0 leaves them sharp.

    Example:
        >>> pair = flow.obstacles.union(flow.obstacles.ball((0.0, 0.0), 0.5), flow.obstacles.ball((3.0, 0.0), 0.5))
        >>> float(pair(2.0, 0.0))
        0.5
    """

    def pair(a: jax.Array, b: jax.Array) -> jax.Array:
        filled = jnp.maximum(smoothing - jnp.abs(a - b), 0)
        # The quotient is zero for sharp edges.
        return jnp.minimum(a, b) - filled**2 / (4 * jnp.maximum(smoothing, jnp.finfo(a.dtype).tiny))

    def distance(*x: jax.Array) -> jax.Array:
        nearest = shapes[0](*x)
        for shape in shapes[1:]:
            nearest = pair(nearest, shape(*x))
        return nearest

    return distance


def complement(shape: Shape) -> Shape:
    """Return the complement of a shape, such as a container.

    Example:
        >>> container = flow.obstacles.complement(flow.obstacles.ball((0.0, 0.0), 1.0))
        >>> float(container(0.0, 0.0))
        1.0
    """
    return lambda *x: -shape(*x)


def translate(shape: Shape, shift: Point) -> Shape:
    """Return a shape moved by ``shift``, one number for each axis.

    Example:
        >>> moved = flow.obstacles.translate(flow.obstacles.ball((0.0, 0.0), 1.0), (2.0, 0.0))
        >>> float(moved(4.0, 0.0))
        1.0
    """
    return lambda *x: shape(*(a - s for a, s in zip(x, shift, strict=True)))


def rotate(shape: Shape, angle: jax.Array | float, pivot: Point) -> Shape:
    """Return a shape turned counterclockwise in the x-y plane.

    Args:
        shape: any.
        angle: in radians.
        pivot: (x, y) of the center of rotation.

    Example:
        >>> upright = flow.obstacles.rotate(flow.obstacles.box((0.0, 0.0), (2.0, 0.5)), np.pi / 2, pivot=(0.0, 0.0))
        >>> print(f"{upright(0.0, 3.0):.3f}")
        1.000
    """
    cosine, sine = jnp.cos(angle), jnp.sin(angle)

    def distance(x: jax.Array, y: jax.Array, *z: jax.Array) -> jax.Array:
        a, b = x - pivot[0], y - pivot[1]
        return shape(pivot[0] + cosine * a + sine * b, pivot[1] - sine * a + cosine * b, *z)

    return distance


def _joined(nearest_side: jax.Array, outside: jax.Array) -> jax.Array:
    """Return the distance from the nearest side inside a body and on its surface, and that outside."""
    # In a sum of both, max(q, 0) and min(q, 0) would halve the slope exactly on the surface.
    return jnp.where(nearest_side > 0, outside, nearest_side)


def length(vector: list[jax.Array]) -> jax.Array:
    """Return the Euclidean length, with derivative zero where it is zero."""
    return root(sum(a**2 for a in vector))  # type: ignore[arg-type]


# Half the thickness of an airfoil: 5 t times these numbers and the powers 1/2, 1, 2, 3, 4 of the place on the chord.
# The last of them closes the trailing edge.
THICKNESS = (0.2969, -0.1260, -0.3516, 0.2843, -0.1036)


def polygon(vertices: jax.Array | np.ndarray | list) -> Shape:
    """Return a plane polygon, whose distance is exact everywhere.

    The distance is that from the line of the nearest edge, or from the nearest vertex.

    Args:
        vertices: (n, 2), in order around it, either way; sides must not cross.

    Raises:
        UserError: if there are fewer than three.

    Example:
        >>> triangle = flow.obstacles.polygon([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> float(triangle(0.5, -1.0)), float(triangle(2.0, 0.0))
        (1.0, 1.0)
    """
    corners = jnp.asarray(vertices)
    points = max(len(corners), 3) if corners.ndim else 3
    check_shape("vertices", corners, "at least three points (x, y), in order around it", (points, 2))

    def distance(x: jax.Array, y: jax.Array) -> jax.Array:
        x, y = jnp.broadcast_arrays(jnp.asarray(x, dtype=float), jnp.asarray(y, dtype=float))
        a = like(x, corners)
        b = jnp.roll(a, -1, axis=0)
        turn = jnp.sign(jnp.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]))

        def pass_edge(carry: tuple, ends: tuple) -> tuple[tuple, None]:
            nearest, signed, on_edge, inside = carry
            (ax, ay), (bx, by) = ends
            ex, ey, px, py = bx - ax, by - ay, x - ax, y - ay
            square = ex**2 + ey**2
            passed = (px * ex + py * ey) / square
            # With both ends: at a vertex, the distance from it has no slope.
            within = (passed >= 0) & (passed <= 1)
            clipped = jnp.clip(passed, 0, 1)
            away = length([px - clipped * ex, py - clipped * ey])
            # Signed distance from the line, positive outside: smooth across the edge.
            across = turn * (ey * px - ex * py) / jnp.sqrt(square)
            closer = away < nearest
            crossed = ((ay > y) != (by > y)) & (px < py * ex / jnp.where(ey == 0, 1, ey))
            carry = (
                jnp.where(closer, away, nearest),
                jnp.where(closer, jnp.where(within, across, away), signed),
                jnp.where(closer, within, on_edge),
                inside ^ crossed,
            )
            return carry, None

        nothing = jnp.zeros(x.shape, bool)
        first = jnp.full(x.shape, jnp.inf, x.dtype), jnp.zeros_like(x), nothing, nothing
        (_, signed, on_edge, inside), _ = jax.lax.scan(pass_edge, first, ((a[:, 0], a[:, 1]), (b[:, 0], b[:, 1])))
        return jnp.where(on_edge | ~inside, signed, -signed)

    return distance


def airfoil(
    digits: str | tuple[jax.Array | float, jax.Array | float, jax.Array | float],
    chord: jax.Array | float = 1.0,
    points: int = 40,
) -> Shape:
    """Return an airfoil of the four-digit family of NACA, its nose at (0, 0) and its tail at (chord, 0).

    Args:
        digits: four of them, as in "2412"; or the largest camber, its place and the thickness, in parts of the chord,
            which may be parameters: (0.02, 0.4, 0.12).
        chord: its length.
        points: number of edges on each side, 8 or more.

    Raises:
        UserError: if the digits are not four.

    Example:
        >>> wing = flow.obstacles.airfoil("0012")
        >>> print(f"{wing(-1.0, 0.0):.3f} before the nose, half the thickness {-wing(0.3, 0.0):.3f}")
        1.000 before the nose, half the thickness 0.060

    Reference: Jacobs, Ward and Pinkerton, NACA Report 460 (1933).
    """
    if isinstance(digits, str):
        if len(digits) != 4 or not digits.isdecimal() or digits[2:] == "00":
            raise UserError(f'digits = \'{digits}\'; give four digits with a thickness, such as "0012" or "2412"')
        digits = int(digits[0]) / 100, int(digits[1]) / 10, int(digits[2:]) / 100
    camber, place, thickness = digits
    # Points are densest where the curvature is largest, at the nose.
    s = (1 - np.cos(np.pi * np.arange(points + 1) / points)) / 2
    half = 5 * thickness * sum(c * s**p for c, p in zip(THICKNESS, (0.5, 1, 2, 3, 4), strict=True))
    # Without camber the position of the largest camber is undefined.
    place = jnp.where(jnp.asarray(camber) == 0, 0.5, place)
    before, after = camber / place**2, camber / (1 - place) ** 2
    front = s < place
    height = jnp.where(front, before * (2 * place * s - s**2), after * (1 - 2 * place + 2 * place * s - s**2))
    slope = jnp.arctan(2 * jnp.where(front, before, after) * (place - s))
    upper = jnp.stack([s - half * jnp.sin(slope), height + half * jnp.cos(slope)], axis=1)
    lower = jnp.stack([s + half * jnp.sin(slope), height - half * jnp.cos(slope)], axis=1)
    # From the tail over the upper side to the nose and back below; nose and tail are one point each.
    return polygon(chord * jnp.concatenate([upper[::-1], lower[1:-1]]))


RADIUS = formula("radius", unit="length", bounds=POSITIVE)
HALF_AXES = per_axis(formula("a length", unit="length", bounds=POSITIVE), "from the center along each axis")
# The surface of a body that is not round does not move along itself.
NOT_ROUND = {"spin": "which is not round: its angle turns it"}


@part(values={"radius": RADIUS}, dimensions=PLANE)
def circle(*, radius: jax.Array | float) -> Shape:
    """Return a circle around the origin."""
    return ball((0.0, 0.0), radius)


@part(values={"radius": RADIUS}, dimensions=SPACE)
def sphere(*, radius: jax.Array | float) -> Shape:
    """Return a sphere around the origin."""
    return ball((0.0, 0.0, 0.0), radius)


@part(
    values={
        "radius": RADIUS,
        "half_length": formula("from the center to each end; endless without it", None, unit="length", bounds=POSITIVE),
    },
    dimensions=SPACE,
)
def centered_cylinder(*, radius: jax.Array | float, half_length: jax.Array | float | None = None) -> Shape:
    """Return a cylinder along z around the origin."""
    return ball((0.0, 0.0), radius) if half_length is None else cylinder((0.0, 0.0, 0.0), radius, half_length)


@part(
    values={
        "radius": RADIUS,
        "half_length": formula("from the center to those of both ends", unit="length", bounds=POSITIVE),
    },
    excludes=NOT_ROUND,
)
def centered_capsule(*, radius: jax.Array | float, half_length: jax.Array | float) -> Shape:
    """Return a capsule along x around the origin."""
    ends = [way * half_length for way in (-1, 1)]

    def distance(*x: jax.Array) -> jax.Array:
        start, end = ((place, *(0.0 for _ in x[1:])) for place in ends)
        return capsule(start, end, radius)(*x)

    return distance


@part(
    values={
        "half_lengths": HALF_AXES,
        "rounding": formula("radius of the edges, at most the least half length", None, bounds=NOT_NEGATIVE),
    },
    excludes=NOT_ROUND,
    aliases={"half_widths": "half_lengths", "half_length": "half_lengths", "half_axes": "half_lengths"},
)
def centered_box(*, half_lengths: Point, rounding: jax.Array | float = 0.0) -> Shape:
    """Return a box around the origin."""
    return box((0.0,) * len(half_lengths), half_lengths, rounding)


@part(values={"half_axes": HALF_AXES}, excludes=NOT_ROUND, dimensions=PLANE)
def ellipse(*, half_axes: Point) -> Shape:
    """Return an ellipse around the origin."""
    return superellipse((0.0, 0.0), half_axes)


@part(values={"half_axes": HALF_AXES}, dimensions=SPACE)
def ellipsoid(*, half_axes: Point) -> Shape:
    """Return an ellipsoid around the origin."""
    return superellipse((0.0, 0.0, 0.0), half_axes)


@part(
    values={
        "corners": several(
            several(formula("a coordinate", unit="length"), "a point", (2,)), "in order around it, from its position"
        )
    },
    excludes=NOT_ROUND,
    dimensions=PLANE,
)
def centered_polygon(*, corners: tuple[Point, ...]) -> Shape:
    """Return a polygon."""
    return polygon(jnp.stack([x for corner in corners for x in corner]).reshape(-1, 2))


@part(
    keys={"digits": text('four of them, such as "2412"')},
    values={"chord": formula("its length; its position is a quarter of it behind the nose", bounds=POSITIVE)},
    excludes=NOT_ROUND,
    dimensions=PLANE,
)
def centered_airfoil(*, digits: str, chord: jax.Array | float) -> Shape:
    """Return an airfoil of the four-digit family of NACA, its quarter chord at the origin."""
    return translate(airfoil(digits, chord), (-chord / 4, 0.0))


@part(
    values={
        "distance": formula(
            "in place of a shape, negative inside: by x, y and z from the position, along axes that turn with it",
            takes=("x", "y", "z"),
        )
    }
)
def by_distance(*, distance: Shape) -> Shape:
    """Return the shape that is where a function of the coordinates is negative."""
    return distance
