"""Differences in space: order, conservation, friction with both slopes at walls and with fields, first eddies."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import vorticity
from simkit.flow.eddies import spectrum_of_eddies
from simkit.flow.operators.advection import LAYERS, advection
from simkit.flow.operators.differences import at_centers, divergence, gradient
from simkit.flow.operators.diffusion import (
    laplacian,
    shear,
)
from tests.flow.flows import (
    uniform_channel,
)
from tests.flow.test_operators import LOWER, MOVING, UPPER, in_box
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

LENGTH = 2.0


def smooth_flow(x, y):
    """A velocity with u = LOWER and UPPER and v = 0 on the walls; the walls are where 1 - y^2 is zero."""
    wave = jnp.pi * x
    u = (1 - y**2) * jnp.exp(y / 2) * (1 + jnp.sin(wave)) + (LOWER + UPPER) / 2 + (UPPER - LOWER) / 2 * y
    v = (1 - y**2) * jnp.cos(wave + 1) * jnp.cosh(y)
    return u, v


def smooth_pressure(x, y):
    return jnp.sin(jnp.pi * x + 0.3) * jnp.exp(y)


@every(("dimension", "cells", "peak"), [(2, 64, 6.0), (3, 32, 4.0)])
def test_eddies_in_a_periodic_box_have_the_energy_and_spectrum_asked_for(dimension, cells, peak):
    box = in_box(dimension, cells, peak)
    velocity, worst, energy = jax.jit(
        lambda key: (
            (state := box.init(box.params, key)).velocity,
            box.diagnose(state, box.params)["divergence"],
            box.diagnose(state, box.params)["kinetic_energy"],
        )
    )(jax.random.key(3))
    assert energy == pytest.approx(0.3, rel=1e-12)
    # Round-off of velocities of order 1 over cells of 0.1 to 0.2.
    assert worst < 1e-12
    waves = np.meshgrid(*[np.fft.fftfreq(cells, 1 / cells)] * dimension, indexing="ij")
    k = np.sqrt(sum(w**2 for w in waves))
    energies = sum(abs(np.fft.fftn(u)) ** 2 for u in velocity)
    assert energies[(0,) * dimension] < 1e-20 * energies.sum()
    # The mean of k over the spectrum k^4 exp(-2 (k/k_p)^2), cut where the grid ends: in the plane 1.064 k_p.
    shells = np.arange(1, cells // 2)
    expected = np.asarray(spectrum_of_eddies(shells, peak))
    found = np.array([energies[np.abs(k - s) < 0.5].sum() for s in shells])
    # About 2 pi k_p^2 modes in the plane, with half as many free amplitudes: the mean is known to 2 %.
    assert (shells * found).sum() / found.sum() == pytest.approx((shells * expected).sum() / expected.sum(), rel=0.04)
    assert abs(shells[found.argmax()] - peak) <= 1


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
