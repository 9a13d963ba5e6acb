"""Points at equal distances along the outline of a plane body, by interpolation at traced positions."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.implicit import root_change
from simkit.core.pytrees import pytree
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.grid import like
from simkit.flow.obstacles.body import Kinematics, carried, turned
from simkit.flow.obstacles.shapes import Point, Shape


def interpolated(x: jax.Array, points: jax.Array | np.ndarray, values: jax.Array | np.ndarray) -> jax.Array:
    """Return a piecewise linear function at x, constant beyond its ends.

    All positions are compared with all points, a few dozen each: `jnp.searchsorted` has no derivative in an exported
    program with a symbolic batch size.

    Args:
        x: positions, of any shape.
        points: increasing, (n,).
        values: of the function at the points, (n,).
    """
    points, values = (array if isinstance(array, jax.Array) else like(x, array) for array in (points, values))
    below = jnp.sum(x[..., None] >= points[1:-1], axis=-1)
    share = (x - points[below]) / (points[below + 1] - points[below])
    # Not `jnp.clip`, whose derivative is half the slope where a position equals a point.
    share = jnp.where(x < points[0], 0, jnp.where(x > points[-1], 1, share))
    return values[below] + share * (values[below + 1] - values[below])


# Bisections until the interval on a ray is round-off, in float64.
HALVINGS = 60
# Rays for each point, along which the length of the outline is measured.
REFINEMENT = 8


@pytree
class Outline:
    """Points on the outline of a body.

    Attributes:
        points: ``(2, n)`` coordinates.
        normals: ``(2, n)`` unit vectors out of the body, each the mean along its piece of the outline.
        spacing: (n,) length of the outline for each point.
    """

    points: jax.Array
    normals: jax.Array
    spacing: jax.Array


def outline(shape: Shape, pivot: Point, count: int, reach: jax.Array | float) -> Outline:
    """Return points at equal distances along the outline; differentiable in the parameters of the shape.

    Each point is the middle of a piece of the outline, and its normal that of the chord of its piece: at a corner the
    shape has two, and to choose one would break the symmetry of the body.

    Every ray from the pivot must meet the outline once, see `check_outline`.

    Args:
        shape: the body.
        pivot: (x, y) inside the body.
        count: number of points.
        reach: upper bound of the distance between pivot and outline.
    """
    pivot = tuple(jnp.asarray(p) for p in pivot)
    rays = count * REFINEMENT
    # For a body that depends on no parameter everything below is constant; without the barrier the compiler would fold
    # it, with a rounding that differs between programs.
    pivot, angles = computed_once((pivot, like(pivot[0], 2 * np.pi * np.arange(rays + 1) / rays)))
    x, y = on_rays(shape, pivot, angles, reach)
    passed = jnp.pad(jnp.cumsum(jnp.hypot(jnp.diff(x), jnp.diff(y))), (1, 0))
    # The ends of the pieces, and between them the points.
    halves = passed[-1] * like(passed, np.arange(2 * count) / (2 * count))
    x, y = on_rays(shape, pivot, interpolated(halves, passed, angles), reach)
    ends = jnp.stack([x[::2], y[::2]])
    along = jnp.roll(ends, -1, axis=1) - ends
    normals = jnp.stack([along[1], -along[0]]) / jnp.hypot(*along)
    return Outline(points=jnp.stack([x[1::2], y[1::2]]), normals=normals, spacing=jnp.full(count, passed[-1] / count))


def moved_outline(around: Outline, pivot: Point, now: Kinematics) -> Outline:
    """Return an outline transformed by a motion.

    Args:
        around: the outline of the shape.
        pivot: of the shape.
        now: position of the body.
    """
    return Outline(
        points=jnp.stack(carried(list(around.points), pivot, now)),
        normals=jnp.stack(turned(list(around.normals), now.angle)),
        spacing=around.spacing if now.size is None else now.size * around.spacing,
    )


def check_outline(shape: Shape, pivot: Point, reach: jax.Array | float, has_slope: bool | None = None) -> None:
    """Refuse a body whose outline is not star-shaped about its pivot.

    Args:
        shape: the body, with the values it would run with.
        pivot: (x, y), with the values it would run with.
        reach: upper bound of the distance between pivot and outline.
        has_slope: whether its points on rays are numbers, where that is known.

    Raises:
        UserError: if the pivot is outside the body, a ray from it meets the outline more than once, or the shape has no
            slope there.
    """
    pivot = tuple(jnp.asarray(p, dtype=float) for p in pivot)
    where = f"({float(pivot[0]):.3g}, {float(pivot[1]):.3g})"
    angles = 2 * np.pi * np.arange(360) / 360
    radii = np.linspace(0, float(reach), 2000)[:, None]
    x, y = (
        jnp.asarray(float(p) + radii * way, float)
        for p, way in zip(pivot, (np.cos(angles), np.sin(angles)), strict=True)
    )
    # One program compiles faster than each of its operations.
    inside = np.asarray(jax.jit(shape)(x, y)) < 0
    if has_slope is None:
        points = jax.jit(lambda angles: on_rays(shape, pivot, angles, reach))(jnp.asarray(angles[::8], float))
        has_slope = bool(np.isfinite(np.asarray(points)).all())
    problems = {
        f"the pivot {where} of the obstacle is outside it; choose one inside": not inside[0].all(),
        f"a ray from the pivot {where} meets the outline of the obstacle more than once; choose another pivot": (
            inside[1:] & ~inside[:-1]
        ).any(),
        f"the distance of the obstacle around {where} has the slope zero on its surface, so that its outline is not a "
        "number; write one that crosses zero with a slope, such as x**2 + y**2 - 1 in place of its cube": not has_slope,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise UserError(f"{problem}, or method direct_forcing")


def on_rays(shape: Shape, pivot: tuple, angles: jax.Array, reach: jax.Array | float) -> tuple[jax.Array, jax.Array]:
    """Return the points at which rays from the pivot meet the outline; differentiable in the parameters of the shape.

    Args:
        shape: the body.
        pivot: (x, y) inside the body.
        angles: of the rays, counterclockwise from the x axis.
        reach: distance from the pivot within which the whole outline lies.
    """
    direction = jnp.cos(angles), jnp.sin(angles)

    def along(radius: jax.Array) -> jax.Array:
        return shape(*(p + radius * d for p, d in zip(pivot, direction, strict=True)))

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        middle = (ends[0] + ends[1]) / 2
        inside = along(middle) < 0
        return jnp.where(inside, middle, ends[0]), jnp.where(inside, ends[1], middle)

    near = jnp.zeros_like(angles)
    near, far = jax.lax.fori_loop(0, HALVINGS, halve, (near, near + reach))
    radius = jax.lax.stop_gradient((near + far) / 2)

    def slope_at(radius: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.stop_gradient(jax.jvp(along, (radius,), (jnp.ones_like(radius),)))

    value, slope = slope_at(radius)
    converted, shape_parameters = jax.closure_convert(along, radius)

    def remaining(change: jax.Array, known: tuple[jax.Array, list[jax.Array]]) -> jax.Array:
        radius, shape_parameters = known
        return converted(radius + change, *shape_parameters)

    radius = radius - value / slope
    # Where the slope jumps on the surface, as at a corner, derivatives are those of one side: by the slope at the root.
    slope = slope_at(radius)[1]
    radius = radius + root_change(remaining, slope, (radius, shape_parameters))
    return tuple(p + radius * d for p, d in zip(pivot, direction, strict=True))


def farthest_corner(pivot: Point, domain: Domain) -> jax.Array:
    """Return the distance from a point to the farthest corner of a domain."""
    far = [
        jnp.maximum(p - float(a.faces[0]), float(a.faces[-1]) - p) for p, a in zip(pivot, domain.grid.axes, strict=True)
    ]
    return jnp.hypot(*far)
