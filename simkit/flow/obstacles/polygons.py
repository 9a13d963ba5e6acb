"""Polygons as signed distances, and airfoils of four digits made of them."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.flow.arrays import like
from simkit.flow.obstacles.shapes import Shape, length

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
    """
    corners = jnp.asarray(vertices)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
        raise UserError(f"vertices has shape {corners.shape}; give at least three points (x, y), in order around it")

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
        points: number of edges on each side, at least 8.

    Raises:
        UserError: if the digits are not four, or there are too few points.

    Reference: Jacobs, Ward and Pinkerton, NACA Report 460 (1933).
    """
    if isinstance(digits, str):
        if len(digits) != 4 or not digits.isdecimal() or digits[2:] == "00":
            raise UserError(f'digits = \'{digits}\'; give four digits with a thickness, such as "0012" or "2412"')
        digits = int(digits[0]) / 100, int(digits[1]) / 10, int(digits[2:]) / 100
    if points < 8:
        raise UserError(f"points = {points}; choose at least 8 on each side")
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
