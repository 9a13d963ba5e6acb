"""The symmetric gradient at walls: friction is self-adjoint and dissipates the squares of all gradients."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.operators.differences import difference_at_centers, inside
from simkit.flow.operators.diffusion import laplacian, second_difference, shear
from simkit.flow.scalar import TransportedScalar, mean_scalar
from tests.flow.flows import (
    CHANNELS,
    DOMAINS,
    inner,
    noise,
    on_inner_faces,
    scalar_noise,
    some,
    uniform_channel,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def symmetric(place):
    return dataclasses.replace(place, wall_slope="symmetric")


def friction(velocity, place, *axes):
    return laplacian(surround(velocity, no_motion(place), place), place, *axes)


SYMMETRIC = {name: symmetric(DOMAINS[name]) for name in ("stretched", "cavity", "slip", "channel 3-D")}
SOME = some(SYMMETRIC, "stretched", "cavity")


@functools.cache
def measured(place):
    """Products of noise and of its friction, from one program."""
    grid = place.grid

    def dissipation(velocity):
        dissipated = 0.0
        for i, f in enumerate(velocity):
            for j, axis in enumerate(grid.axes):
                others = [grid.along(a.distances if k == i else a.widths, k) for k, a in enumerate(grid.axes) if k != j]
                if i == j:
                    slopes, lengths = difference_at_centers(f, i, grid), axis.widths
                else:
                    slopes = shear(inside(f, i, grid), i, j, no_motion(place), place)
                    # At a side the slope belongs to the half cell between it and the first points.
                    ends = [] if axis.periodic else [axis.widths[:1] / 2, axis.widths[-1:] / 2]
                    lengths = np.concatenate([ends[0], axis.distances, ends[1]]) if ends else axis.distances
                weight = grid.along(lengths, j) * np.prod(np.broadcast_arrays(*others), axis=0)
                dissipated = dissipated + jnp.sum(slopes**2 * weight) / grid.volume
        return dissipated

    @jax.jit
    def products(u, v):
        one, other, own = (inner(a, friction(b, place), grid) for a, b in ((u, v), (v, u), (u, u)))
        residuals = []
        for axis in place.bounded():
            for i, (f, term) in enumerate(zip(on_inner_faces(u, grid), friction(u, place, (axis,)), strict=True)):
                product = jnp.moveaxis(jnp.tensordot(second_difference(i, axis, place), f, (1, axis)), 0, axis)
                residuals.append(jnp.max(jnp.abs(term - product)))
        return {
            "asymmetry": jnp.abs(one - other) / jnp.abs(own),
            "lost": -own,
            "dissipated": dissipation(u),
            "residual of the matrices": jnp.max(jnp.stack(residuals)),
        }

    return products(noise(grid, 0), noise(grid, 1))


@every(SOME)
def test_symmetric_friction_is_self_adjoint(place):
    # Rounding of sums of up to 400 terms.
    assert measured(place)["asymmetry"] < 1e-14


@every(SOME)
def test_symmetric_friction_dissipates_the_sum_of_the_squares_of_all_gradients(place):
    found = measured(place)
    # Rounding of sums of up to 400 terms of one sign.
    assert found["lost"] == pytest.approx(float(found["dissipated"]), rel=1e-13)
    assert found["lost"] > 0


@every(CHANNELS)
def test_symmetric_friction_is_exact_for_couette_flow_on_any_grid(walls):
    y = walls.grid.axes[1].centers
    u = jnp.broadcast_to(jnp.asarray(0.7 * (1 + y) / 2 - 0.3 * (1 - y) / 2), walls.grid.cells)
    boundary = (None, ((-0.3, 0.0), (0.7, 0.0)))
    place = symmetric(walls)
    found = jax.jit(lambda u: laplacian(surround((u, jnp.zeros(place.grid.shape(1))), boundary, place), place)[0])(u)
    # Rounding of u, 1e-16, divided by the square of the cell height, at least 0.05, times the weights.
    assert jnp.max(jnp.abs(found)) < 1e-12


@every([8, 16, 32])
def test_error_of_symmetric_friction_in_poiseuille_flow_is_a_quarter_of_the_squared_cell_size(cells):
    for kind, error in (("symmetric", (2 / cells) ** 2 / 4), ("parabola", 0.0)):
        place = dataclasses.replace(uniform_channel((4, cells)), wall_slope=kind)
        profile = np.linalg.solve(np.asarray(second_difference(0, 1, place)), np.full(cells, -2.0))
        # Rounding of 1 over the square of cells above 1/16, times a condition number of 1e3.
        np.testing.assert_allclose(profile, 1 - place.grid.axes[1].centers ** 2 + error, rtol=0, atol=1e-12)


def test_symmetric_diffusion_of_a_scalar_lowers_the_variance_by_the_squares_of_its_gradients():
    place = symmetric(DOMAINS["cavity"])
    scalar = TransportedScalar(place, (("value", "value"), ("insulated", "value")), lambda params: jnp.ones(()))
    at_rest = tuple(jnp.zeros(place.grid.shape(i)) for i in range(2))
    a, b = (scalar_noise(place.grid, seed) for seed in (0, 1))

    @jax.jit
    def product(f, g):
        return mean_scalar(f * scalar.rate(g, at_rest, {}, jnp.zeros(()), (0, 1)), place.grid)

    one, other, own = (float(product(f, g)) for f, g in ((a, b), (b, a), (a, a)))
    # Rounding of sums of 108 terms.
    assert one == pytest.approx(other, abs=1e-13 * abs(own))
    assert own < 0
