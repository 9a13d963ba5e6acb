"""The staggered grid of simkit against that of jax-cfd in a periodic box: the same scheme, to rounding."""

import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.operators.advection import advection
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.diffusion import laplacian
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import noise

BOXES = {
    "plane": domain((periodic_axis(16, 3.0), periodic_axis(12, 2.0)), (None, None)),
    "3-D": domain((periodic_axis(8, 3.0), periodic_axis(6, 2.0), periodic_axis(10, 1.0)), (None,) * 3),
}


@pytest.fixture(scope="module", params=BOXES)
def box(request):
    """Return simkit's domain and the functions of jax-cfd to compare with, of the same velocity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfd = pytest.importorskip("jax_cfd.base")
    place = BOXES[request.param]
    n = place.grid.dimension
    grid = cfd.grids.Grid(place.grid.cells, domain=tuple((a.faces[0], a.faces[-1]) for a in place.grid.axes))
    periodic = cfd.boundaries.periodic_boundary_conditions(n)

    def theirs(velocity):
        offsets = [tuple(1.0 if i == j else 0.5 for j in range(n)) for i in range(n)]
        return tuple(
            cfd.grids.GridVariable(cfd.grids.GridArray(data, offset, grid), periodic)
            for data, offset in zip(velocity, offsets, strict=True)
        )

    def ours(*fields):
        return tuple(field.data for field in fields)

    return types.SimpleNamespace(
        place=place,
        divergence=jax.jit(lambda velocity: ours(cfd.finite_differences.divergence(theirs(velocity)))[0]),
        acceleration=jax.jit(lambda velocity: ours(*cfd.advection.convect_linear(theirs(velocity)))),
        laplacian=jax.jit(lambda velocity: ours(*map(cfd.finite_differences.laplacian, theirs(velocity)))),
        project=jax.jit(lambda velocity: ours(*cfd.pressure.projection(theirs(velocity)))),
    )


@pytest.fixture
def velocity(box, x64):
    """White noise."""
    return noise(box.place.grid, 0)


def test_divergence_is_the_same(box, velocity):
    # Rounding of numbers below 4 over cells above 0.1.
    np.testing.assert_allclose(divergence(velocity, box.place.grid), box.divergence(velocity), rtol=0, atol=1e-12)


def test_advection_is_the_same(box, velocity):
    terms = jax.jit(lambda v: advection(surround(v, no_motion(box.place), box.place), box.place))(velocity)
    for term, expected in zip(terms, box.acceleration(velocity), strict=True):
        # Rounding of squares below 16 over cells above 0.1.
        np.testing.assert_allclose(-term, expected, rtol=0, atol=1e-11)


def test_laplacian_is_the_same(box, velocity):
    terms = jax.jit(lambda v: laplacian(surround(v, no_motion(box.place), box.place), box.place))(velocity)
    for term, expected in zip(terms, box.laplacian(velocity), strict=True):
        # Rounding of numbers below 16 over the square of 0.1.
        np.testing.assert_allclose(term, expected, rtol=0, atol=1e-11)


def test_projection_is_the_same(box, velocity):
    grid = box.place.grid

    @jax.jit
    def project(velocity):
        pressure = pressure_solver(grid)(divergence(velocity, grid))
        return jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid))

    projected = project(velocity)
    for own, expected in zip(projected, box.project(velocity), strict=True):
        # Two direct solvers with a few hundred roundings each.
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12)


def test_inviscid_flow_is_the_same(box, velocity):
    dt = 0.005
    model = Equations(box.place, lambda params: params["viscosity"], fixed_time_step, method="adams_bashforth")
    start, step = stepper(model)
    params = {"viscosity": jnp.asarray(0.0), "time_step": jnp.asarray(dt)}
    theirs = tuple(box.project(velocity))
    state = jax.jit(start)(theirs, params)
    old = box.acceleration(theirs)
    step, project, accelerate = jax.jit(step), box.project, box.acceleration
    for i in range(30):
        new = accelerate(theirs)
        weights = (1.0, 0.0) if i == 0 else (1.5, 0.5)
        theirs = project(jax.tree.map(lambda w, a, b, n=weights: w + dt * (n[0] * a - n[1] * b), theirs, new, old))
        old = new
        state = step(state, params)
    # Rounding, 1e-15 each step; the flow turns by about 0.15 * 10 in this time and hardly magnifies it.
    for own, expected, before in zip(state.velocity, theirs, velocity, strict=True):
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-11)
        assert jnp.max(jnp.abs(own - before)) > 0.1
