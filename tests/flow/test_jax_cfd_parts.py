"""Parts of jax-cfd from which a step is built: they run, or are refused by name in one line."""

import functools

import jax
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.jax_cfd import from_jax_cfd, load
from tests.tables import every

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


def own_time_step(v, params):
    dt = cfd.equations.dynamic_time_step(v, 0.5, params["viscosity"], GRID)
    return cfd.equations.semi_implicit_navier_stokes(1.0, params["viscosity"], dt, GRID)(v)


def collocated(v, params):
    build = load("collocated").equations.semi_implicit_navier_stokes
    return build(1.0, params["viscosity"], params["time_step"], GRID)(v)


@every(
    [
        (lambda v, params: implicit_smagorinsky(v, params), FACES, "'implicit_smagorinsky_navier_stokes' multiplies"),
        (own_time_step, FACES, r"'dynamic_time_step' compare traced numbers; let the step take params\['time_step'\]$"),
        (explicit(), CORNERS, r"^the velocity lives at the offsets .*; give it on the faces .* at the centers"),
        (collocated, FACES, "^the step of jax-cfd cannot be traced: '.*' fails with InconsistentOffsetError: "),
    ]
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
