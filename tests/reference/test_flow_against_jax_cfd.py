"""Our channel beside jax-cfd's periodic box: without friction a channel is half of a box that mirrors itself.

A box of height 4, in which u is even and v odd about the plane y = 1 and about y = -1 and y = 3, stays so, and nothing
crosses those planes: its lower half is a channel whose walls let the fluid slip. Advection, pressure and projection do
not know about slip, so ours must equal jax-cfd's central scheme on the box to rounding.
"""

import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.adams_bashforth import adams_bashforth
from simkit.flow.grid import uniform_grid
from simkit.flow.operators import advection, divergence, gradient, laplacian
from simkit.flow.pressure import pressure_solver

CELLS, LENGTH = (16, 12), 3.0


@pytest.fixture(scope="module")
def box():
    """Return jax-cfd's side of every comparison: functions of the velocity in our channel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfd = pytest.importorskip("jax_cfd.base")
    nx, ny = CELLS
    grid = cfd.grids.Grid((nx, 2 * ny), domain=((0.0, LENGTH), (-1.0, 3.0)))
    periodic = cfd.boundaries.periodic_boundary_conditions(2)

    def mirrored(velocity):
        u, v = velocity
        u = jnp.concatenate([u, u[:, ::-1]], axis=1)
        v = jnp.concatenate([v, -v[:, -2::-1], v[:, -1:]], axis=1)
        return tuple(
            cfd.grids.GridVariable(cfd.grids.GridArray(data, offset, grid), periodic)
            for data, offset in ((u, (1.0, 0.5)), (v, (0.5, 1.0)))
        )

    def lower_half(*fields):
        return tuple(field.data[:, :ny] for field in fields)

    return types.SimpleNamespace(
        divergence=lambda velocity: lower_half(cfd.finite_differences.divergence(mirrored(velocity)))[0],
        acceleration=lambda velocity: lower_half(*cfd.advection.convect_linear(mirrored(velocity))),
        laplacian=lambda velocity: lower_half(*map(cfd.finite_differences.laplacian, mirrored(velocity))),
        project=lambda velocity: lower_half(*cfd.pressure.projection(mirrored(velocity))),
    )


@pytest.fixture
def velocity(x64):
    """White noise with nothing through the walls."""
    u, v = jax.random.normal(jax.random.key(0), (2, *CELLS))
    return u, v.at[:, -1].set(0)


def test_divergence_is_the_same(box, velocity):
    # Rounding of numbers below 4 over cells of width 1/6.
    np.testing.assert_allclose(
        divergence(velocity, uniform_grid(CELLS, LENGTH)), box.divergence(velocity), rtol=0, atol=1e-13
    )


def test_advection_is_the_same(box, velocity):
    along, across = advection(velocity, uniform_grid(CELLS, LENGTH))
    expected_along, expected_across = box.acceleration(velocity)
    # Rounding of squares below 16 over cells of width 1/6.
    np.testing.assert_allclose(-along, expected_along, rtol=0, atol=1e-12)
    np.testing.assert_allclose(-across, expected_across, rtol=0, atol=1e-12)


def test_laplacian_is_the_same_away_from_the_walls(box, velocity):
    u, v = laplacian(velocity, (0.0, 0.0), uniform_grid(CELLS, LENGTH))
    expected_u, expected_v = box.laplacian(velocity)
    # Rounding of numbers below 16 over the square of 1/6. No slip changes u in the cells on the walls only.
    np.testing.assert_allclose(u[:, 1:-1], expected_u[:, 1:-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(v, expected_v, rtol=0, atol=1e-12)


def test_projection_is_the_same(box, velocity):
    grid = uniform_grid(CELLS, LENGTH)
    pressure = pressure_solver(grid)(divergence(velocity, grid))
    projected = jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid))
    for ours, theirs in zip(projected, box.project(velocity), strict=True):
        # Two direct solvers with a few hundred roundings each.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_inviscid_flow_stays_the_same(box, velocity):
    grid, dt = uniform_grid(CELLS, LENGTH), 0.01
    start, step = adams_bashforth(grid)
    zero = jnp.asarray(0.0)
    theirs = box.project(velocity)
    state = start(theirs, zero, (zero, zero))
    old = box.acceleration(theirs)
    step, project, accelerate = jax.jit(step), jax.jit(box.project), jax.jit(box.acceleration)
    for _ in range(30):
        new = accelerate(theirs)
        theirs = project(jax.tree.map(lambda w, a, b: w + dt * (1.5 * a - 0.5 * b), theirs, new, old))
        old = new
        state = step(state, zero, jnp.asarray(dt), (zero, zero), (zero, zero))
    # Rounding, 1e-15 each step; the flow turns by 0.3 * 4 in this time and hardly magnifies it.
    for ours, expected, before in zip(state.velocity, theirs, velocity, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)
        assert jnp.max(jnp.abs(ours - before)) > 0.1
