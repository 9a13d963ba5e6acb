import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.grid import uniform_grid
from simkit.flow.operators import advection, at_centers, divergence, gradient, laplacian, magnitude, shear, vorticity
from tests.flow.flows import inner, noise, on_every_grid, on_uniform_grids, solenoidal_noise

pytestmark = pytest.mark.usefixtures("x64")

LENGTH = 2.0
LOWER, UPPER = 0.3, -0.7


def smooth_flow(x, y):
    """A velocity with u = LOWER and UPPER and v = 0 on the walls; the walls are where 1 - y^2 is zero."""
    wave = jnp.pi * x
    u = (1 - y**2) * jnp.exp(y / 2) * (1 + jnp.sin(wave)) + (LOWER + UPPER) / 2 + (UPPER - LOWER) / 2 * y
    v = (1 - y**2) * jnp.cos(wave + 1) * jnp.cosh(y)
    return u, v


def smooth_pressure(x, y):
    return jnp.sin(jnp.pi * x + 0.3) * jnp.exp(y)


def u_of(x, y):
    return smooth_flow(x, y)[0]


def v_of(x, y):
    return smooth_flow(x, y)[1]


def points(grid):
    """The points of u, of v on inner faces, and of the centers."""
    right, upper = grid.x + grid.dx / 2, grid.faces[1:-1]
    return [jnp.meshgrid(x, y, indexing="ij") for x, y in ((right, grid.y), (grid.x, upper), (grid.x, grid.y))]


def at(function, where):
    return jax.vmap(jax.vmap(function))(*where)


def sample(grid):
    right_faces, upper_faces, _ = points(grid)
    return at(u_of, right_faces), jnp.pad(at(v_of, upper_faces), ((0, 0), (0, 1)))


def d(function, axis):
    return jax.grad(function, argnums=axis)


@functools.partial(jax.jit, static_argnums=0)
def errors(ny):
    """The largest error of each operator on the smooth fields, on a grid with ny cells across."""
    grid = uniform_grid((ny, ny), LENGTH)
    right, upper, center = points(grid)
    velocity = sample(grid)
    pressure = at(smooth_pressure, center)

    def exact_divergence(x, y):
        return d(u_of, 0)(x, y) + d(v_of, 1)(x, y)

    def exact_along(x, y):
        return d(lambda x, y: u_of(x, y) ** 2, 0)(x, y) + d(lambda x, y: u_of(x, y) * v_of(x, y), 1)(x, y)

    def exact_across(x, y):
        return d(lambda x, y: u_of(x, y) * v_of(x, y), 0)(x, y) + d(lambda x, y: v_of(x, y) ** 2, 1)(x, y)

    def exact_laplacian(f):
        return lambda x, y: d(d(f, 0), 0)(x, y) + d(d(f, 1), 1)(x, y)

    def exact_vorticity(x, y):
        return d(v_of, 0)(x, y) - d(u_of, 1)(x, y)

    along, across = advection(velocity, grid)
    laplacian_u, laplacian_v = laplacian(velocity, (LOWER, UPPER), grid)
    slope_x, slope_y = gradient(pressure, grid)
    u, v = at_centers(velocity)
    found = {
        "divergence": (divergence(velocity, grid), at(exact_divergence, center)),
        "gradient x": (slope_x, at(d(smooth_pressure, 0), right)),
        "gradient y": (slope_y[:, :-1], at(d(smooth_pressure, 1), upper)),
        "advection of u": (along, at(exact_along, right)),
        "advection of v": (across[:, :-1], at(exact_across, upper)),
        # In the cells on the walls the parabola leaves a first-order error, which the solution of a boundary-value
        # problem does not feel: see test_diffusion.py.
        "laplacian of u": (laplacian_u[:, 1:-1], at(exact_laplacian(u_of), right)[:, 1:-1]),
        "laplacian of v": (laplacian_v[:, :-1], at(exact_laplacian(v_of), upper)),
        "shear": (
            shear(velocity[0], (LOWER, UPPER), grid),
            at(d(u_of, 1), jnp.meshgrid(grid.x + grid.dx / 2, grid.faces, indexing="ij")),
        ),
        "vorticity": (vorticity(velocity, (LOWER, UPPER), grid), at(exact_vorticity, center)),
        "u at centers": (u, at(u_of, center)),
        "v at centers": (v, at(v_of, center)),
    }
    return {name: jnp.max(jnp.abs(a - b)) for name, (a, b) in found.items()}


def test_every_operator_is_second_order():
    coarse, fine = errors(32), errors(64)
    orders = {name: np.log2(coarse[name] / fine[name]) for name in coarse}
    # The next term of the error is a factor h^2 = 1e-3 smaller (h where it is one-sided), times derivatives of about
    # 10: it moves the measured order by less than 0.1.
    for name, order in orders.items():
        assert order == pytest.approx(2, abs=0.1), f"{name}: order {order}, errors {coarse[name]}, {fine[name]}"


@on_every_grid
def test_gradient_is_minus_the_adjoint_of_divergence(grid):
    velocity = noise(grid, 0)
    pressure = jax.random.normal(jax.random.key(1), grid.cells)
    work = inner(velocity, gradient(pressure, grid), grid)
    expansion = jnp.sum(pressure * divergence(velocity, grid) * grid.heights) / (2 * grid.cells[0])
    # Sums of up to 200 terms of size 1/dx^2 or less, at most 100, each rounded to 1e-16.
    assert abs(work + expansion) < 1e-12


@on_every_grid
def test_advection_conserves_kinetic_energy_of_a_solenoidal_flow(grid):
    velocity = solenoidal_noise(grid, 2)
    advected = advection(velocity, grid)
    power = inner(velocity, advected, grid)
    size = jnp.sqrt(inner(velocity, velocity, grid) * inner(advected, advected, grid))
    assert size > 0.1
    # Round-off of a mean of terms of this size; without divergence the exact value is zero.
    assert abs(power) < 1e-13 * size


@on_every_grid
def test_advection_conserves_momentum(grid):
    along, _ = advection(solenoidal_noise(grid, 3), grid)
    # The fluxes cancel in pairs: what remains is the rounding of a mean of terms.
    assert abs(jnp.sum(along * grid.heights)) < 1e-14 * jnp.sum(jnp.abs(along) * grid.heights) * 10


@on_every_grid
def test_viscous_term_dissipates_kinetic_energy(grid):
    for seed in range(5):
        velocity = noise(grid, seed)
        assert inner(velocity, laplacian(velocity, (0.0, 0.0), grid), grid) < 0


@on_uniform_grids
def test_laplacian_and_shear_of_couette_poiseuille_flow_are_exact(grid):
    profile = 1.5 * (1 - grid.y**2) + UPPER * (1 + grid.y) / 2 + LOWER * (1 - grid.y) / 2
    u = jnp.broadcast_to(jnp.asarray(profile), grid.cells)
    laplacian_u, _ = laplacian((u, jnp.zeros(grid.cells)), (LOWER, UPPER), grid)
    slope = shear(u, (LOWER, UPPER), grid)
    # Rounding of u, 1e-16, divided by the square of the cell height, at least 0.05, times the weights.
    assert jnp.allclose(laplacian_u, -3.0, rtol=0, atol=1e-12)
    exact = -3 * np.array([-1.0, 1.0]) + (UPPER - LOWER) / 2
    assert jnp.allclose(slope[:, jnp.array([0, -1])], exact, rtol=0, atol=1e-13)


@on_every_grid
def test_laplacian_of_couette_flow_is_zero_on_any_grid(grid):
    u = jnp.broadcast_to(jnp.asarray(UPPER * (1 + grid.y) / 2 + LOWER * (1 - grid.y) / 2), grid.cells)
    laplacian_u, _ = laplacian((u, jnp.zeros(grid.cells)), (LOWER, UPPER), grid)
    # Rounding of u, 1e-16, divided by the square of the cell height, at least 0.05, times the weights.
    assert jnp.max(jnp.abs(laplacian_u)) < 1e-12


def test_speed_has_derivative_zero_at_rest():
    assert jax.grad(lambda u: magnitude((u, u)))(0.0) == 0
    # d sqrt(3^2 + v^2)/dv at v = 4 is 4/5 up to rounding.
    assert jax.grad(lambda v: magnitude((3.0, v)))(4.0) == pytest.approx(0.8, rel=1e-15)
