"""Parts of jax-cfd from which a step is built: they run, or are refused by name in one line."""

import jax
import pytest

from simkit.flow.jax_cfd import from_jax_cfd
from tests.flow.test_jax_cfd_parts import FACES, GRID, PARAMS, explicit

cfd = pytest.importorskip("jax_cfd.base")


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
