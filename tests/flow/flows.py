"""Domains and velocity fields that several tests share."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.boundary.domain import Domain, domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Axis, Grid, Velocity, axis_of_faces, bounded_axis, periodic_axis
from simkit.flow.operators.differences import inside

WALLS = ("wall", "wall")
SCHEMES = {
    "runge_kutta": {"method": "runge_kutta"},
    "runge_kutta, implicit": {"method": "runge_kutta", "implicit": (0, 1)},
    "adams_bashforth": {"method": "adams_bashforth"},
    "adams_bashforth, implicit": {"method": "adams_bashforth", "implicit": (0, 1)},
    "adams_bashforth, implicit across": {"method": "adams_bashforth", "implicit": (1,)},
}


def uneven_axis(cells: int, lower: float = -1.0, upper: float = 1.0):
    """A bounded axis without symmetry whose neighboring cells differ in width by up to a factor of two."""
    widths = np.random.default_rng(0).uniform(0.7, 1.4, cells)
    faces = np.concatenate([[0.0], np.cumsum(widths)])
    return axis_of_faces(lower + (upper - lower) * faces / faces[-1])


def uniform_channel(cells=(16, 12), length=3.0) -> Domain:
    return domain((periodic_axis(cells[0], length), bounded_axis(cells[1], 2.0, -1.0)), (None, WALLS))


CHANNELS = {
    "even": uniform_channel(),
    "odd": uniform_channel((9, 7), 2.0),
    "small": uniform_channel((4, 4), 1.0),
    "stretched": domain((periodic_axis(12, 3.0), uneven_axis(17)), (None, WALLS)),
}
DOMAINS = CHANNELS | {
    "periodic": domain((periodic_axis(12, 3.0), periodic_axis(10, 2.0)), (None, None)),
    "cavity": domain((uneven_axis(9, 0, 2), bounded_axis(12, 2.0, -1.0, 1.5)), (WALLS, WALLS)),
    "slip": domain((uneven_axis(9), periodic_axis(8, 2.0)), (("wall", "free_slip"), None)),
    "channel 3-D": domain((periodic_axis(8, 3.0), uneven_axis(7), periodic_axis(6, 2.0)), (None, WALLS, None)),
    "box 3-D": domain((uneven_axis(5, 0, 1), bounded_axis(6, 1.0), bounded_axis(4, 1.0, 0.0, 1.0)), (WALLS,) * 3),
}


def some(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the entries of a table with these names."""
    return {name: table[name] for name in names}


# Drawn and projected by NumPy: compiling a random number generator takes longer than most tests.
def noise(grid: Grid, seed: int, dtype=float) -> Velocity:
    """White noise of unit variance, with nothing through the sides."""
    return tuple(jnp.asarray(f, dtype) for f in drawn(grid, seed))


def drawn(grid: Grid, seed: int) -> list[np.ndarray]:
    """White noise as NumPy arrays."""
    random = np.random.default_rng(seed)
    components = [random.standard_normal(grid.shape(i)) for i in range(grid.dimension)]
    for i, axis in enumerate(grid.axes):
        if not axis.periodic:
            np.moveaxis(components[i], i, 0)[[0, -1]] = 0
    return components


def scalar_noise(grid: Grid, seed: int) -> jax.Array:
    """White noise of unit variance in the cells."""
    return jnp.asarray(np.random.default_rng(100 + seed).standard_normal(grid.cells))


@functools.cache
def solenoidal(grid: Grid, seed: int) -> list[np.ndarray]:
    """White noise without divergence as NumPy arrays, from a dense solution of the equation of the pressure."""
    velocity = drawn(grid, seed)
    total = sum(
        np.kron(
            np.kron(np.eye(math.prod(grid.cells[:i])), second_difference_of(axis)),
            np.eye(math.prod(grid.cells[i + 1 :])),
        )
        for i, axis in enumerate(grid.axes)
    )
    source = numpy_divergence(velocity, grid)
    pressure = np.linalg.lstsq(total, source.ravel())[0].reshape(grid.cells)
    return [f - slope for f, slope in zip(velocity, numpy_gradient(pressure, grid), strict=True)]


def second_difference_of(axis: Axis) -> np.ndarray:
    """The matrix of the second difference along one axis, without a slope at the ends of one that is bounded."""
    line = Grid((axis,))
    columns = [numpy_divergence(numpy_gradient(unit, line), line) for unit in np.eye(axis.cells)]
    return np.stack(columns, axis=1)


def numpy_gradient(p: np.ndarray, grid: Grid) -> list[np.ndarray]:
    """The gradient on the faces, with zeros on both ends of bounded axes."""
    components = []
    for i, axis in enumerate(grid.axes):
        if axis.periodic:
            components.append((np.roll(p, -1, i) - p) / grid.along(axis.distances, i))
        else:
            inner = np.diff(p, axis=i) / grid.along(axis.distances, i)
            components.append(np.pad(inner, [(1, 1) if j == i else (0, 0) for j in range(p.ndim)]))
    return components


def numpy_divergence(velocity: Sequence[np.ndarray], grid: Grid) -> np.ndarray:
    """The divergence in the cells."""
    total = np.zeros(grid.cells)
    for i, (f, axis) in enumerate(zip(velocity, grid.axes, strict=True)):
        change = f - np.roll(f, 1, i) if axis.periodic else np.diff(f, axis=i)
        total = total + change / grid.along(axis.widths, i)
    return total


def solenoidal_noise(grid: Grid, seed: int) -> Velocity:
    """White noise without divergence."""
    return tuple(jnp.asarray(f) for f in solenoidal(grid, seed))


@functools.partial(jax.jit, static_argnums=2)
def inner(a: Velocity, b: Velocity, grid: Grid) -> jax.Array:
    """The inner product of two velocities per unit volume, each inner face weighted by its control volume."""
    total = 0.0
    for i, (f, g) in enumerate(zip(a, b, strict=True)):
        points = [x if x.shape == control_volumes(i, grid).shape else inside(x, i, grid) for x in (f, g)]
        total = total + jnp.sum(points[0] * points[1] * control_volumes(i, grid))
    return total / grid.volume
