"""Grids and velocity fields that several tests share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import ChannelGrid, uniform_grid
from simkit.flow.operators import Velocity, divergence, gradient
from simkit.flow.pressure import pressure_solver


def stretched_grid(cells: tuple[int, int] = (12, 17), length: float = 3.0) -> ChannelGrid:
    """A grid without symmetry whose neighboring cells differ in height by up to a factor of two."""
    heights = np.random.default_rng(0).uniform(0.7, 1.4, cells[1])
    faces = np.concatenate([[0.0], np.cumsum(heights)])
    return ChannelGrid(cells, length, 2 * faces / faces[-1] - 1)


UNIFORM = {"even": uniform_grid((16, 12), 3.0), "odd": uniform_grid((9, 7), 2.0), "small": uniform_grid((4, 4), 1.0)}
GRIDS = UNIFORM | {"stretched": stretched_grid()}

on_uniform_grids = pytest.mark.parametrize("grid", UNIFORM.values(), ids=UNIFORM)
on_every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


def noise(grid: ChannelGrid, seed: int, dtype=float) -> Velocity:
    """White noise of unit variance, with nothing through the walls."""
    u, v = jax.random.normal(jax.random.key(seed), (2, *grid.cells), dtype)
    return u, v.at[:, -1].set(0)


def solenoidal_noise(grid: ChannelGrid, seed: int) -> Velocity:
    """White noise without divergence."""
    velocity = noise(grid, seed)
    pressure = pressure_solver(grid)(divergence(velocity, grid))
    return jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid))


def inner(a: Velocity, b: Velocity, grid: ChannelGrid) -> jax.Array:
    """The inner product of two velocities per unit volume, each point weighted by its control volume."""
    along = jnp.sum(a[0] * b[0] * grid.heights)
    across = jnp.sum((a[1] * b[1])[:, :-1] * grid.distances)
    return (along + across) / (2 * grid.cells[0])
