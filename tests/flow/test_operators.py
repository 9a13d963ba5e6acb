import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import control_volumes, vorticity
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.advection import LAYERS, advection
from simkit.flow.operators.differences import at_centers, curl, divergence, gradient
from simkit.flow.operators.diffusion import laplacian, second_difference, shear
from tests.flow.flows import (
    CHANNELS,
    DOMAINS,
    WALLS,
    inner,
    noise,
    on_inner_faces,
    scalar_noise,
    solenoidal_noise,
    some,
    uniform_channel,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

LENGTH = 2.0
LOWER, UPPER = 0.3, -0.7
MOVING = None, ((LOWER, 0.0), (UPPER, 0.0))


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


def on(function, x, y):
    return jax.vmap(jax.vmap(function))(*jnp.meshgrid(x, y, indexing="ij"))


def d(function, axis):
    return jax.grad(function, argnums=axis)


@functools.partial(jax.jit, static_argnums=(0, 1))
def errors(ny, scheme="central"):
    """The largest error of each operator on the smooth fields, on a grid with ny cells across."""
    walls = uniform_channel((ny, ny), LENGTH)
    grid = walls.grid
    (right, upper), (x, y) = (a.points for a in grid.axes), (a.centers for a in grid.axes)
    velocity = on(u_of, right, y), on(v_of, x, upper)

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

    along, across = advection(surround(velocity, MOVING, walls, LAYERS[scheme]), walls, scheme)
    laplacian_u, laplacian_v = laplacian(surround(velocity, MOVING, walls), walls)
    slope_x, slope_y = gradient(on(smooth_pressure, x, y), grid)
    u, v = at_centers(velocity, grid)
    inner_faces = upper[1:-1]
    # Next to a wall the parabola of the upwind scheme has no third point.
    away = slice(2, -2) if scheme == "upwind" else slice(None)
    found = {
        "divergence": (divergence(velocity, grid), on(exact_divergence, x, y)),
        "gradient x": (slope_x, on(d(smooth_pressure, 0), right, y)),
        "gradient y": (slope_y[:, 1:-1], on(d(smooth_pressure, 1), x, inner_faces)),
        "advection of u": (along[:, away], on(exact_along, right, y)[:, away]),
        "advection of v": (across[:, away], on(exact_across, x, inner_faces)[:, away]),
        # In the cells on the walls the parabola leaves a first-order error, which the solution of a boundary-value
        # problem does not feel: see test_implicit.py.
        "laplacian of u": (laplacian_u[:, 1:-1], on(exact_laplacian(u_of), right, y)[:, 1:-1]),
        "laplacian of v": (laplacian_v, on(exact_laplacian(v_of), x, inner_faces)),
        "shear": (shear(velocity[0], 0, 1, MOVING, walls), on(d(u_of, 1), right, upper)),
        "vorticity": (vorticity(velocity, MOVING, walls), on(exact_vorticity, x, y)),
        "u at centers": (u, on(u_of, x, y)),
        "v at centers": (v, on(v_of, x, y)),
    }
    return {name: jnp.max(jnp.abs(a - b)) for name, (a, b) in found.items()}


@every(["central"])
def test_every_operator_is_second_order(scheme):
    coarse, fine = errors(32, scheme), errors(64, scheme)
    orders = {name: np.log2(coarse[name] / fine[name]) for name in coarse}
    # The next term of the error is a factor h^2 = 1e-3 smaller (h where it is one-sided), times derivatives of about
    # 10: it moves the measured order by less than 0.1.
    for name, order in orders.items():
        assert order == pytest.approx(2, abs=0.1), f"{name}: order {order}, errors {coarse[name]}, {fine[name]}"


SOME = some(DOMAINS, "stretched", "cavity", "channel 3-D")


@functools.cache
def measured(place):
    """Products of noise, of noise without divergence, and of what the operators make of them, from one program."""
    grid, rest = place.grid, no_motion(place)
    volumes = functools.reduce(np.multiply, (grid.along(a.widths, i) for i, a in enumerate(grid.axes)))

    def friction(velocity, *axes):
        return laplacian(surround(velocity, rest, place), place, *axes)

    @jax.jit
    def products(velocity, pressure, carrier, several):
        central = advection(surround(carrier, rest, place), place)
        upwind = advection(surround(carrier, rest, place, LAYERS["upwind"]), place, "upwind")
        own = on_inner_faces(carrier, grid)
        sums = []
        for i, term in enumerate(central):
            weighted = term * control_volumes(i, grid)
            sums.append((jnp.sum(weighted), jnp.sum(jnp.abs(weighted))))
        residuals = []
        for axis in place.bounded():
            for i, (f, term) in enumerate(
                zip(on_inner_faces(velocity, grid), friction(velocity, (axis,)), strict=True)
            ):
                product = jnp.moveaxis(jnp.tensordot(second_difference(i, axis, place), f, (1, axis)), 0, axis)
                residuals.append(jnp.max(jnp.abs(term - product)))
        return {
            "work of the pressure": inner(velocity, gradient(pressure, grid), grid),
            "expansion": jnp.sum(pressure * divergence(velocity, grid) * volumes) / grid.volume,
            "power of central advection": inner(carrier, central, grid),
            "size of that power": jnp.sqrt(inner(own, own, grid) * inner(central, central, grid)),
            "power of upwind advection": inner(carrier, upwind, grid),
            "sums of momentum, and of its magnitude": sums,
            "power of friction": jax.vmap(lambda v: inner(v, friction(v), grid))(several),
            "residual of the matrices": jnp.max(jnp.stack(residuals or [jnp.zeros(())])),
        }

    several = jax.tree.map(lambda *f: jnp.stack(f), *(noise(grid, seed) for seed in range(5)))
    return products(noise(grid, 0), scalar_noise(grid, 1), solenoidal_noise(grid, 2), several)


@every(SOME)
def test_upwind_advection_dissipates_kinetic_energy(place):
    assert measured(place)["power of upwind advection"] > 0


@every(SOME)
def test_advection_conserves_momentum_along_periodic_axes(place):
    for i, (total, size) in enumerate(measured(place)["sums of momentum, and of its magnitude"]):
        # A wall that the fluid does not cross takes no momentum by advection along it; one across it does, by pressure.
        if place.sides[i] is None:
            # The fluxes cancel in pairs: what remains is the rounding of a mean of terms.
            assert abs(total) < 1e-13 * size


@every(SOME)
def test_viscous_term_dissipates_kinetic_energy(place):
    assert jnp.all(measured(place)["power of friction"] < 0)


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
