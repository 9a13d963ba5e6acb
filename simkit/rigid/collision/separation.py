"""Separating-axis test of two boxes: the axis of largest separation, or least overlap, among fifteen."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector, dot

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
