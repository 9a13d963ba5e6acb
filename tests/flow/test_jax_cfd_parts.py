"""Parts of jax-cfd from which a step is built: they run, or are refused by name in one line."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.jax_cfd import from_jax_cfd, load

cfd = pytest.importorskip("jax_cfd.base")
CELLS = 8
GRID = cfd.grids.Grid((CELLS, CELLS), domain=((0, 2 * np.pi),) * 2)
PARAMS = {"viscosity": 0.1, "time_step": 0.01}


def noise(offsets):
    """White noise at some offsets."""

    def initial(params, key):
        conditions = cfd.boundaries.periodic_boundary_conditions(2)
        return tuple(
            cfd.grids.GridVariable(cfd.grids.GridArray(jax.random.normal(k, GRID.shape), offset, GRID), conditions)
            for offset, k in zip(offsets, jax.random.split(key), strict=True)
        )

    return initial


FACES, CENTERS, CORNERS = noise(GRID.cell_faces), noise((GRID.cell_center,) * 2), noise(((0.0, 0.0),) * 2)


def explicit(**parts):
    def step(v, params):
        build = cfd.equations.semi_implicit_navier_stokes
        return build(1.0, params["viscosity"], params["time_step"], GRID, **parts)(v)

    return step


def implicit(**parts):
    def step(v, params):
        build = cfd.equations.implicit_diffusion_navier_stokes
        return build(1.0, params["viscosity"], params["time_step"], GRID, **parts)(v)

    return step


def eddy_viscosity(name):
    def step(v, params):
        build = getattr(cfd.subgrid_models, name)
        terms = {"dt": params["time_step"], "cs": 0.2, "forcing": None, "density": 1.0, "grid": GRID}
        return build(viscosity=params["viscosity"], **terms)(v)

    return step


def own_time_step(v, params):
    dt = cfd.equations.dynamic_time_step(v, 0.5, params["viscosity"], GRID)
    return cfd.equations.semi_implicit_navier_stokes(1.0, params["viscosity"], dt, GRID)(v)


def collocated(v, params):
    build = load("collocated").equations.semi_implicit_navier_stokes
    return build(1.0, params["viscosity"], params["time_step"], GRID)(v)


def each(advect):
    return lambda v: tuple(advect(u, v, 0.01) for u in v)


PARTS = {
    "upwind": lambda: explicit(convect=each(cfd.advection.advect_upwind)),
    "Runge-Kutta": lambda: explicit(time_stepper=cfd.time_stepping.classic_rk4),
    "conjugate gradients": lambda: implicit(
        diffusion_solve=cfd.diffusion.solve_cg, pressure_solve=cfd.pressure.solve_cg
    ),
    "forcing": lambda: explicit(forcing=cfd.forcings.simple_turbulence_forcing(GRID)),
    "explicit eddy viscosity": lambda: eddy_viscosity("explicit_smagorinsky_navier_stokes"),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_the_staggered_solver_run(name, x64):
    simulation = from_jax_cfd(PARTS[name](), GRID, FACES, PARAMS)
    state = jax.jit(simulation.step)(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    # Pressure is found to the tolerance of the conjugate gradients, 1e-6 of the divergence of the noise.
    assert simulation.diagnose(state, simulation.params)["divergence"] < 1e-4


def test_collocated_flow_is_observed_at_the_cell_centers(x64):
    simulation = from_jax_cfd(collocated, GRID, CENTERS, PARAMS)
    state = simulation.init(simulation.params, jax.random.key(0))
    seen = simulation.observe(state, simulation.params)
    np.testing.assert_array_equal(seen["u"], state.flow[0].data)
    before = simulation.diagnose(state, simulation.params)
    after = simulation.diagnose(jax.jit(simulation.step)(state, simulation.params), simulation.params)
    # Differences over two cells of 2 pi/8 of noise; jax-cfd's projection solves to 1e-6 of that.
    u, v = seen["u"], seen["v"]
    differences = (jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0) + jnp.roll(v, -1, 1) - jnp.roll(v, 1, 1)) / (np.pi / 2)
    assert before["divergence"] == pytest.approx(float(jnp.max(jnp.abs(differences))), rel=1e-12)
    assert after["divergence"] < 1e-4 * before["divergence"]
    assert after["kinetic_energy"] < before["kinetic_energy"]


@pytest.mark.parametrize(
    ("step", "initial", "message"),
    [
        (
            lambda v, params: implicit_smagorinsky(v, params),
            FACES,
            "'implicit_smagorinsky_navier_stokes' multiplies NumPy arrays .* use explicit_smagorinsky_navier_stokes$",
        ),
        (own_time_step, FACES, r"'dynamic_time_step' compare traced numbers; let the step take params\['time_step'\]$"),
        (explicit(), CORNERS, r"^the velocity lives at the offsets .*; give it on the faces .* at the centers"),
        (collocated, FACES, "^the step of jax-cfd cannot be traced: '.*' fails with InconsistentOffsetError: "),
    ],
    ids=["implicit eddy viscosity", "own time step", "corners", "staggered flow, collocated step"],
)
def test_parts_that_cannot_run_are_refused_by_name(step, initial, message):
    with pytest.raises(UserError, match=message) as caught:
        from_jax_cfd(step, GRID, initial, PARAMS)
    assert "\n" not in str(caught.value)


def implicit_smagorinsky(v, params):
    build = functools.partial(cfd.subgrid_models.implicit_smagorinsky_navier_stokes, cs=0.2, density=1.0, grid=GRID)
    return build(dt=params["time_step"], viscosity=params["viscosity"])(v)


def test_an_error_in_a_users_step_is_raised_unchanged():
    def step(v, params):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        from_jax_cfd(step, GRID, FACES, PARAMS)
