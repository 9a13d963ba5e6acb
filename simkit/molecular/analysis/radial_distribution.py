"""Radial distribution function g(r)."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.molecular import spaces


def radial_distribution(position: jax.Array, cell: jax.Array, *, reach: jax.Array | float, bins: int) -> jax.Array:
    """Return g(r) of one configuration, averaged over shells of equal thickness.

        g_k = V / N^2 n_k / v_k

    with n_k the number of ordered pairs whose distance by the nearest image is in shell k, and v_k the volume of that
    shell. An ideal gas has g = 1 - 1/N at every distance. It is a histogram, so its derivatives are zero. Pairs are
    counted N at a time, to limit memory.

    Args:
        position: length, (N, d); may lie outside the cell.
        cell: (d,) side lengths or (d, d) lattice vectors as rows.
        reach: scalar, length: outer radius of the last shell; at most half the smallest width of the cell.
        bins: number of shells. Good values: 20 to 50 per particle diameter.

    Returns:
        (bins,), shell k at the distance ``reach (k + 1/2) / bins``; NaN in shells beyond half the smallest width of the
        cell, where images are missing.

    Raises:
        UserError: if ``bins`` is below 1, or cell and positions have different dimensions.

    Reference: Allen, Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford (2017), section 8.2,
    doi:10.1093/oso/9780198803195.001.0001.
    """
    if bins < 1:
        raise UserError(f"bins = {bins}; choose at least 1, such as 100")
    position, cell = jax.lax.stop_gradient((position, cell))
    reach = jax.lax.stop_gradient(jnp.asarray(reach, position.dtype))
    count, dimension = position.shape
    space = spaces.of_cell(cell, dimension)
    columns = tuple(position[:, axis] for axis in range(dimension))
    # Concatenated with itself, so that the partners at an index offset k are one slice.
    doubled = tuple(jnp.concatenate([x, x]) for x in columns)

    def add(numbers: jax.Array, offset: jax.Array) -> tuple[jax.Array, None]:
        others = tuple(jax.lax.dynamic_slice_in_dim(x, offset, count) for x in doubled)
        apart = space.nearest_image(tuple(x - y for x, y in zip(columns, others, strict=True)))
        distance = jnp.sqrt(sum(d * d for d in apart))
        shell = jnp.where(distance < reach, (distance * (bins / reach)).astype(jnp.int32), bins)
        # Pairs beyond the last shell and NaN positions are dropped.
        return numbers.at[shell].add(1, mode="drop"), None

    # Index offsets 1 ... (N - 1) / 2 give every pair once; for even N the offset N / 2 gives each of its pairs twice.
    numbers = jnp.zeros(bins, jnp.int32)
    numbers, _ = jax.lax.scan(add, numbers, jnp.arange(1, (count - 1) // 2 + 1, dtype=jnp.int32))
    ordered = 2 * numbers
    if count % 2 == 0:
        ordered = ordered + add(jnp.zeros(bins, jnp.int32), jnp.int32(count // 2))[0]

    edges = reach * jnp.arange(bins + 1, dtype=position.dtype) / bins
    unit_ball = math.pi if dimension == 2 else 4 / 3 * math.pi
    volumes = unit_ball * (edges[1:] ** dimension - edges[:-1] ** dimension)
    distribution = ordered.astype(position.dtype) / volumes * (space.volume / count**2)
    # A reach of exactly half the width may exceed it by round-off.
    slack = 1 + 8 * jnp.finfo(position.dtype).eps
    return jnp.where(2 * edges[1:] <= slack * space.widths.min(), distribution, jnp.nan)


def shell_centers(reach: float, bins: int) -> np.ndarray:
    """Return the distances in the middle of the shells, (bins,).

    Args:
        reach: outer radius of the last shell, length.
        bins: number of shells.
    """
    return reach * (np.arange(bins) + 0.5) / bins


def highest_peak(distribution: jax.Array, reach: float) -> tuple[jax.Array, jax.Array]:
    """Return position and height of the highest peak, by a parabola through the highest shell and its neighbors.

    Args:
        distribution: g(r), (bins,), from `radial_distribution` or a mean of such.
        reach: outer radius of the last shell, length.
    """
    distribution = jax.lax.stop_gradient(distribution)
    bins = len(distribution)
    top = jnp.clip(jnp.argmax(distribution), 1, bins - 2)
    left, middle, right = distribution[top - 1], distribution[top], distribution[top + 1]
    curvature = left - 2 * middle + right
    # No parabola if the three are in line, or the highest shell is at the edge.
    offset = jnp.where(curvature < 0, (left - right) / (2 * jnp.where(curvature < 0, curvature, 1)), 0)
    offset = jnp.clip(offset, -0.5, 0.5)
    height = middle - (left - right) * offset / 4
    return (top + 0.5 + offset) * (reach / bins), height
