"""The symmetric gradient at walls: friction is self-adjoint and dissipates the squares of all gradients."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.operators.differences import difference_at_centers, inside
from simkit.flow.operators.diffusion import laplacian, second_difference, shear
from simkit.flow.scalar import TransportedScalar, mean_scalar
from tests.flow.flows import (
    CHANNELS,
    DOMAINS,
    WALLS,
    inner,
    noise,
    on_every_channel,
    on_inner_faces,
    uniform_channel,
)

SOME = ("stretched", "cavity", "slip", "channel 3-D")
on_some_domains = pytest.mark.parametrize("place", [DOMAINS[name] for name in SOME], ids=SOME)
pytestmark = pytest.mark.usefixtures("x64")


def symmetric(place):
    return dataclasses.replace(place, wall_slope="symmetric")


def friction(velocity, place):
    return laplacian(surround(velocity, no_motion(place), place), place)


def asymmetry(place):
    """The relative difference of <v, L u> and <u, L v>, for noise."""
    u, v = noise(place.grid, 0), noise(place.grid, 1)
    one, other = inner(u, friction(v, place), place.grid), inner(v, friction(u, place), place.grid)
    return abs(float(one - other)) / float(jnp.abs(inner(u, friction(u, place), place.grid)))


@on_some_domains
def test_symmetric_friction_is_self_adjoint(place):
    # Rounding of sums of up to 400 terms.
    assert asymmetry(symmetric(place)) < 1e-14


def test_friction_of_the_parabola_is_not_self_adjoint():
    assert asymmetry(CHANNELS["stretched"]) > 1e-4


@on_some_domains
def test_symmetric_friction_dissipates_the_sum_of_the_squares_of_all_gradients(place):
    place = symmetric(place)
    grid, velocity = place.grid, noise(place.grid, 2)
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
    lost = -inner(on_inner_faces(velocity, grid), friction(velocity, place), grid)
    # Rounding of sums of up to 400 terms of one sign.
    assert lost == pytest.approx(float(dissipated), rel=1e-13)
    assert lost > 0


@on_some_domains
def test_symmetric_laplacian_of_sides_at_rest_is_the_product_with_its_matrices(place):
    place = symmetric(place)
    velocity = noise(place.grid, 4)
    for axis in place.bounded():
        terms = laplacian(surround(velocity, no_motion(place), place), place, (axis,))
        for i, (f, term) in enumerate(zip(on_inner_faces(velocity, place.grid), terms, strict=True)):
            product = jnp.moveaxis(jnp.tensordot(second_difference(i, axis, place), f, (1, axis)), 0, axis)
            # Rounding of numbers below 4 over the square of cells above 0.05.
            np.testing.assert_allclose(term, product, rtol=0, atol=1e-11)


@on_every_channel
def test_symmetric_friction_is_exact_for_couette_flow_on_any_grid(walls):
    y = walls.grid.axes[1].centers
    u = jnp.broadcast_to(jnp.asarray(0.7 * (1 + y) / 2 - 0.3 * (1 - y) / 2), walls.grid.cells)
    boundary = (None, ((-0.3, 0.0), (0.7, 0.0)))
    around = surround((u, jnp.zeros(walls.grid.shape(1))), boundary, symmetric(walls))
    # Rounding of u, 1e-16, divided by the square of the cell height, at least 0.05, times the weights.
    assert jnp.max(jnp.abs(laplacian(around, symmetric(walls))[0])) < 1e-12


@pytest.mark.parametrize("cells", [8, 16, 32])
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
    a, b = (jax.random.normal(jax.random.key(seed), place.grid.cells) for seed in (0, 1))
    one, other, own = (
        float(mean_scalar(f * scalar.rate(g, at_rest, {}, jnp.zeros(()), (0, 1)), place.grid))
        for f, g in ((a, b), (b, a), (a, a))
    )
    # Rounding of sums of 108 terms.
    assert one == pytest.approx(other, abs=1e-13 * abs(own))
    assert own < 0


def test_unknown_slope_is_refused():
    axes = CHANNELS["even"].grid.axes
    with pytest.raises(UserError, match="wall_slope = 'symetric' is unknown; did you mean 'symmetric'"):
        domain(axes, (None, WALLS), "symetric")
