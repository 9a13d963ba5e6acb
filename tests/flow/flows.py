"""Domains and velocity fields that several tests share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.arrays import Velocity
from simkit.flow.boundary.domain import Domain, domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Grid, axis_of_faces, bounded_axis, periodic_axis
from simkit.flow.operators.differences import divergence, gradient, inside, with_zero_ends
from simkit.flow.solvers.pressure import pressure_solver

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

on_every_channel = pytest.mark.parametrize("walls", CHANNELS.values(), ids=CHANNELS)
on_every_domain = pytest.mark.parametrize("place", DOMAINS.values(), ids=DOMAINS)


def noise(grid: Grid, seed: int, dtype=float) -> Velocity:
    """White noise of unit variance, with nothing through the sides."""
    components = []
    for i, key in enumerate(jax.random.split(jax.random.key(seed), grid.dimension)):
        f = jax.random.normal(key, grid.shape(i), dtype)
        components.append(with_zero_ends(inside(f, i, grid), i, grid))
    return tuple(components)


def solenoidal_noise(grid: Grid, seed: int) -> Velocity:
    """White noise without divergence."""
    velocity = noise(grid, seed)
    pressure = pressure_solver(grid)(divergence(velocity, grid))
    return jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid))


def inner(a: Velocity, b: Velocity, grid: Grid) -> jax.Array:
    """The inner product of two velocities per unit volume, each inner face weighted by its control volume."""
    total = 0.0
    for i, (f, g) in enumerate(zip(a, b, strict=True)):
        points = [x if x.shape == control_volumes(i, grid).shape else inside(x, i, grid) for x in (f, g)]
        total = total + jnp.sum(points[0] * points[1] * control_volumes(i, grid))
    return total / grid.volume


def on_inner_faces(velocity: Velocity, grid: Grid) -> Velocity:
    return tuple(inside(f, i, grid) for i, f in enumerate(velocity))
