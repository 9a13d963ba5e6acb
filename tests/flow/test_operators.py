"""Differences in space: order, conservation, friction with both slopes at walls and with fields, first eddies."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.differences import curl, divergence
from simkit.flow.operators.diffusion import (
    divergence_of_stress,
    laplacian,
    second_difference,
    shear,
    squared_shear_rate,
)
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from tests.flow.flows import (
    CHANNELS,
    DOMAINS,
    WALLS,
    inner,
    noise,
    scalar_noise,
    some,
    uniform_channel,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


LOWER, UPPER = 0.3, -0.7
MOVING = None, ((LOWER, 0.0), (UPPER, 0.0))


def in_box(dimension, cells, wavenumber, energy=0.3):
    """A periodic box of the length 2 pi with eddies, as data."""
    return flow.system(
        axes={name: {"cells": cells, "length": "2*pi", "periodic": True} for name in "xyz"[:dimension]},
        viscosity=0.01,
        initial={"eddies": {"energy": "energy", "wavenumber": wavenumber}},
        parameters={"energy": energy, "time_step": 0.01},
    )


def test_eddies_that_the_grid_does_not_hold_are_refused():
    for peak in (0.5, 17.0):
        box = in_box(2, 64, peak)
        with pytest.raises(UserError, match=r"choose from 1, one wave .* to 16, four cells a wave"):
            box.check(box.params, jax.random.key(0))


@functools.partial(jax.jit, static_argnums=(0, 1))
def friction_of(profile, walls):
    """The Laplacian and the shear of a profile between moving walls."""
    u = jnp.broadcast_to(jnp.asarray(profile(walls.grid.axes[1].centers)), walls.grid.cells)
    laplacian_u, _ = laplacian(surround((u, jnp.zeros(walls.grid.shape(1))), MOVING, walls), walls)
    return laplacian_u, shear(u, 0, 1, MOVING, walls)


def line(y):
    return UPPER * (1 + y) / 2 + LOWER * (1 - y) / 2


def line_and_parabola(y):
    return 1.5 * (1 - y**2) + line(y)


@every(some(CHANNELS, "even", "odd", "small"))
def test_laplacian_and_shear_of_couette_poiseuille_flow_are_exact(walls):
    laplacian_u, slope = friction_of(line_and_parabola, walls)
    # Rounding of u, 1e-16, divided by the square of the cell height, at least 0.05, times the weights.
    assert jnp.allclose(laplacian_u, -3.0, rtol=0, atol=1e-12)
    exact = -3 * np.array([-1.0, 1.0]) + (UPPER - LOWER) / 2
    assert jnp.allclose(slope[:, jnp.array([0, -1])], exact, rtol=0, atol=1e-13)


def test_shear_vanishes_on_a_free_slip_side():
    axes = periodic_axis(8, 2.0), bounded_axis(6, 1.0)
    slip = domain(axes, (None, ("free_slip", "wall")))
    velocity = noise(slip.grid, 0)
    slopes = jax.jit(lambda u: shear(u, 0, 1, no_motion(slip), slip))(velocity[0])
    assert jnp.all(slopes[:, 0] == 0)
    assert jnp.all(slopes[:, -1] != 0)


def test_velocity_of_a_stream_function_has_no_divergence():
    walls = domain((bounded_axis(7, 1.0, 0.0, 1.0), bounded_axis(6, 2.0)), (WALLS, WALLS))
    stream = np.random.default_rng(0).standard_normal((8, 7))
    # Second differences cancel but for rounding of numbers below 4 over cells above 0.06, twice.
    spread = jax.jit(lambda stream: divergence(curl(stream, walls.grid), walls.grid))(stream)
    assert jnp.max(jnp.abs(spread)) < 1e-12


def symmetric(place):
    return dataclasses.replace(place, wall_slope="symmetric")


def friction(velocity, place, *axes):
    return laplacian(surround(velocity, no_motion(place), place), place, *axes)


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


def still(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


@every(["cavity"])
def test_friction_of_a_field_is_self_adjoint_and_dissipates_energy(name):
    place = domain(DOMAINS[name].grid.axes, DOMAINS[name].sides, "symmetric")
    grid = place.grid
    field = jnp.exp(scalar_noise(grid, 2))

    @jax.jit
    def products(u, v):
        around = (divergence_of_stress(surround(w, no_motion(place), place), field, place) for w in (u, v))
        friction, of_other = around
        return inner(v, friction, grid), inner(u, of_other, grid), inner(u, friction, grid)

    one, other, own = products(noise(grid, 0), noise(grid, 1))
    # Rounding of sums of up to 400 terms.
    assert one == pytest.approx(float(other), abs=1e-13 * abs(float(own)))
    assert own < 0


def test_friction_of_a_field_conserves_momentum():
    place = DOMAINS["periodic"]
    field = jnp.exp(scalar_noise(place.grid, 2))
    stress = jax.jit(lambda v: divergence_of_stress(surround(v, no_motion(place), place), field, place))
    for f in stress(noise(place.grid, 0)):
        assert abs(np.sum(f)) < 1e-11


def test_shear_rate_of_a_shear_flow_is_its_velocity_gradient():
    place = DOMAINS["stretched"]
    boundary = (None, ((-0.7, 0.0), (0.7, 0.0)))
    u = jnp.broadcast_to(jnp.asarray(0.7 * place.grid.axes[1].centers), place.grid.cells)
    found = jax.jit(lambda u: squared_shear_rate((u, jnp.zeros(place.grid.shape(1))), boundary, place))(u)
    np.testing.assert_allclose(found, 0.49, rtol=1e-12)


def test_adaptive_step_is_stable_at_the_largest_viscosity():
    place = uniform_channel((4, 8), 2.0)
    field = jnp.ones(place.grid.cells).at[1, 2].set(5.0)
    params = {"courant_number": 0.8, "time_step": 10.0, "viscosity": 5.0}
    steps = [
        Equations(place, viscosity, adaptive_time_step()).step_length(still(place), (), params, 0.0)
        for viscosity in (lambda velocity, params: field, 5.0, "viscosity", lambda params: params["viscosity"])
    ]
    assert steps[0] == pytest.approx(2.51 / 2 / 5 / (4 / 0.5**2 + 4 / 0.25**2), rel=1e-12)
    assert steps[1] == steps[2] == steps[3] == steps[0]


def one(velocity, params):
    return jnp.ones((4, 8))


@every(
    [
        (one, {"implicit": (1,)}, r"implicit friction needs a number; give implicit_viscosity"),
        (one, {"implicit": (1,), "implicit_viscosity": 1.0}, r"method 'runge_kutta' does not support implicit"),
        (one, {"implicit_viscosity": 1.0}, "implicit_viscosity is given, but the viscosity is one number, or no axis"),
        (0.1, {"implicit_viscosity": 1.0, "implicit": (1,)}, "implicit_viscosity is given"),
        (lambda a, b, c: 1.0, {}, "viscosity is a function of 3 arguments; give a number, the name of a parameter"),
        (None, {}, "viscosity = None is no viscosity; give a number"),
    ]
)
def test_unsupported_viscosities_are_refused_by_name(viscosity, options, message):
    with pytest.raises(UserError, match=message) as caught:
        Equations(uniform_channel((4, 8)), viscosity, fixed_time_step, **options)
    assert "\n" not in str(caught.value)


@functools.partial(jax.jit, static_argnums=0)
def eddies(grid, seed):
    return random_eddies(grid, jax.random.key(seed), jnp.float64)


@functools.cache
def of(walls):
    """Eddies in a channel, and what the claims are about, from one program."""
    grid = walls.grid

    @jax.jit
    def numbers():
        velocity = eddies(grid, 0)
        slope = shear(velocity[0], 0, 1, no_motion(walls), walls)
        return velocity, divergence(velocity, grid), kinetic_energy(velocity, grid), slope

    return numbers()


@every(some(CHANNELS, "even", "stretched"))
def test_eddies_have_no_mean_flow(walls):
    velocity, _, _, slope = of(walls)
    # Every wave has zero mean along the channel; 16 roundings of numbers below 10.
    assert np.max(np.abs(np.mean(velocity[0], axis=0))) < 1e-13
    assert np.max(np.abs(np.mean(slope, axis=0))) < 1e-11


def test_eddies_do_not_slip_on_the_walls():
    def slip(ny):
        u = np.asarray(eddies(uniform_channel((16, ny), 4.0).grid, 0)[0])
        # The straight line through the two nearest points, continued to the wall.
        return np.max(np.abs(1.5 * u[:, [0, -1]] - 0.5 * u[:, [1, -2]]))

    # The waves are odd about the wall, so what the straight line misses falls with the cube of the cell height.
    assert np.log2(slip(64) / slip(128)) == pytest.approx(3, abs=0.1)


def test_unknown_slope_is_refused():
    axes = CHANNELS["even"].grid.axes
    with pytest.raises(UserError, match="wall_slope = 'symetric' is unknown; did you mean 'symmetric'"):
        domain(axes, (None, WALLS), "symetric")
