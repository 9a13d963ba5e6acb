"""Simulations of jax-cfd: equations, parts and channels."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.flow import jax_cfd_channel
from simkit.flow.jax_cfd import from_jax_cfd, from_jax_cfd_spectral, load, on_current_jax
from tests.tables import every

cfd = pytest.importorskip("jax_cfd.base")
KEY = jax.random.key(0)


def box(cells=16, dimension=2):
    return cfd.grids.Grid((cells,) * dimension, domain=((0, 2 * np.pi),) * dimension)


def advance(grid, params, **terms):
    """Return jax-cfd's explicit step, made from traced parameters."""
    dt = params["time_step"]
    return cfd.equations.semi_implicit_navier_stokes(1.0, params["viscosity"], dt, grid, **terms)


def vortex(grid, params):
    """Return the vortex of Taylor and Green; it decays as exp(-2 nu t)."""
    return tuple(
        cfd.grids.GridVariable(
            cfd.grids.GridArray(params["speed"] * u.data, u.offset, grid),
            cfd.boundaries.periodic_boundary_conditions(2),
        )
        for u in cfd.validation_problems.TaylorGreen(shape=grid.shape).velocity()
    )


@functools.cache
def periodic():
    grid = box()
    return from_jax_cfd(
        lambda velocity, params: advance(grid, params, convect=cfd.advection.convect_linear)(velocity),
        grid,
        lambda params, key: vortex(grid, params),
        {"viscosity": 0.1, "speed": 1.0, "time_step": 0.01},
    )


@functools.cache
def walled():
    """Return Poiseuille flow from rest, ``nu u'' = -2 nu``."""
    grid = cfd.grids.Grid((4, 16), domain=((0.0, 1.0), (-1.0, 1.0)))
    conditions = cfd.boundaries.channel_flow_boundary_conditions(2)

    def rest(params, key):
        arrays = (cfd.grids.GridArray(jnp.zeros(grid.shape), offset, grid) for offset in grid.cell_faces)
        return tuple(conditions.impose_bc(array) for array in arrays)

    def step(velocity, params):
        def convect(v):
            return tuple(cfd.advection.advect_van_leer(u, v, params["time_step"]) for u in v)

        def push(v):
            strengths = 2 * params["viscosity"], 0 * params["viscosity"]
            return tuple(
                cfd.grids.GridArray(jnp.broadcast_to(f, u.shape), u.offset, grid)
                for f, u in zip(strengths, v, strict=True)
            )

        solve = cfd.pressure.solve_fast_diag_channel_flow
        return advance(grid, params, convect=convect, forcing=push, pressure_solve=solve)(velocity)

    return from_jax_cfd(step, grid, rest, {"viscosity": 1.0, "time_step": 0.003})


@functools.cache
def run(simulation, steps):
    return jax.jit(lambda params, key: segment(simulation(), steps)(simulation().init(params, key), params))


def test_diagnostics_are_those_of_the_taylor_green_vortex(x64):
    simulation = periodic()
    numbers = jax.jit(simulation.diagnose)(run(periodic, 10)(simulation.params, KEY), simulation.params)
    assert float(numbers["time"]) == pytest.approx(0.1)
    # The discrete Laplacian of a wave of 16 points has (sin(h/2) / (h/2))^2 = 0.987 of its eigenvalue, and Euler's step
    # adds nu dt = 0.001 of it: 1.4 % of the exponent 4 nu t = 0.04.
    assert float(numbers["kinetic_energy"]) == pytest.approx(np.exp(-0.04) / 4, rel=0.014 * 0.04)
    assert float(numbers["divergence"]) < 1e-13
    # Speeds along x and y, taken to the centers, peak apart: |u| + |v| is at most 1, and a cell is 0.39 wide.
    assert float(numbers["courant_number"]) == pytest.approx(0.01 * 16 / (2 * np.pi), rel=0.1)


@every([False, True])
def test_jax_and_jax_cfd_are_restored_afterwards(fails):
    names = ("tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten")

    def seen():
        modules = {name: vars(module).get("jax") for name, module in sys.modules.items() if name.startswith("jax_cfd")}
        return {name: hasattr(jax, name) for name in names}, modules, cfd.boundaries.ConstantBoundaryConditions._pad

    before = seen()
    try:
        with on_current_jax() as base:
            assert base is cfd
            # jax-cfd sees them; all other code sees the same JAX as ever.
            assert cfd.equations.jax.tree_map is jax.tree_util.tree_map
            assert cfd.equations.jax.numpy is jnp
            assert {name: hasattr(jax, name) for name in names} == before[0]
            with on_current_jax():
                pass
            assert cfd.equations.jax.tree_map is jax.tree_util.tree_map
            if fails:
                raise KeyError
    except KeyError:
        pass
    now = seen()
    assert (now[0], now[2]) == (before[0], before[2])
    assert {name: now[1][name] for name in before[1]} == before[1]
    assert all(module in (None, jax) for module in now[1].values())  # also in those that the adapter imported
    assert before[1]["jax_cfd.base.equations"] is jax


def test_a_missing_jax_cfd_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax_cfd.base", None)
    with pytest.raises(UserError, match=r"^this flow needs the package jax_cfd: pip install 'jax-cfd' \(.*\)$"):
        from_jax_cfd(lambda v, p: v, None, lambda p, k: None, {"time_step": 1.0})


def velocity_on(grid):
    return lambda params, key: vortex(grid, {"speed": 1.0})


PARAMS = {"time_step": 0.1}
MISTAKES = {
    "no time step": (
        lambda v, p: v,
        box(),
        velocity_on(box()),
        {"dt": 0.1},
        "params has no 'time_step'; add it",
    ),
    "no grid": (
        lambda v, p: v,
        (16, 16),
        velocity_on(box()),
        PARAMS,
        r"grid = \(16, 16\) is of type tuple; give a jax_cfd",
    ),
    "one dimension": (
        lambda v, p: v,
        box(16, 1),
        velocity_on(box()),
        PARAMS,
        "dimension of the grid = 1 is not an integer from 2 to 3",
    ),
    "arrays": (lambda v, p: v, box(), lambda p, k: jnp.ones((2, 16, 16)), PARAMS, "give a tuple of 2 GridVariables"),
    "another grid": (lambda v, p: v, box(8), velocity_on(box()), PARAMS, "2 GridVariables on the grid"),
    "one component": (lambda v, p: v[:1], box(), velocity_on(box()), PARAMS, "must return the flow it is given"),
    "a time step of its own": (lambda v, p: v, box(), velocity_on(box()), PARAMS, r"params\['time_step'\] has no"),
    "a parameter without effect": (
        lambda v, p: advance(box(), {"viscosity": 0.1, **p})(v),
        box(),
        velocity_on(box()),
        PARAMS | {"viscositi": 0.1},
        r"params\['viscositi'\] has no effect: nothing depends on it",
    ),
    "components swapped": (lambda v, p: v[::-1], box(), velocity_on(box()), PARAMS, "the same structure, grid"),
}


@every(list(MISTAKES))
def test_mistakes_are_reported_in_one_line(mistake):
    step, grid, initial, params, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message) as caught:
        from_jax_cfd(step, grid, initial, params)
    assert "\n" not in str(caught.value)


@every(
    [
        (jnp.ones((16, 16)), r"float\d+ of shape \(16, 16\) .*; give a complex array of shape \(16, 9\)"),
        (jnp.ones((16, 8), complex), r"of shape \(16, 8\)"),
        ((jnp.ones((16, 9), complex),), "tuple of shape None"),
    ]
)
def test_vorticity_of_another_kind_is_refused(start, message):
    with pytest.raises(UserError, match=message) as caught:
        from_jax_cfd_spectral(lambda w, p: w, box(), lambda p, k: start, PARAMS)
    assert "\n" not in str(caught.value)


def test_spectral_grid_is_checked():
    with pytest.raises(UserError, match="dimension of the grid = 3 is not an integer from 2 to 2"):
        from_jax_cfd_spectral(lambda w, p: w, box(8, 3), lambda p, k: jnp.ones(3), PARAMS)


@every(["float32", "float64"])
def test_state_has_the_requested_precision_for_any_start(precision):
    with jax.enable_x64(precision == "float64"):
        start = np.ones((16, 9), np.complex64)
        simulation = from_jax_cfd_spectral(
            lambda w, p: w * p["time_step"], box(), lambda p, k: jnp.asarray(start), PARAMS
        )
        state = jax.eval_shape(simulation.step, simulation.init(simulation.params, KEY), simulation.params)
        assert state.flow.dtype == precision and state.flow.shape == (2, 16, 9)


CELLS = 8
GRID = cfd.grids.Grid((CELLS, CELLS), domain=((0, 2 * np.pi),) * 2)
PART_PARAMS = {"viscosity": 0.1, "time_step": 0.01}


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
        from_jax_cfd(step, GRID, initial, PART_PARAMS)
    assert "\n" not in str(caught.value)


def implicit_smagorinsky(v, params):
    build = functools.partial(cfd.subgrid_models.implicit_smagorinsky_navier_stokes, cs=0.2, density=1.0, grid=GRID)
    return build(dt=params["time_step"], viscosity=params["viscosity"])(v)


def test_an_error_in_a_users_step_is_raised_unchanged():
    def step(v, params):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        from_jax_cfd(step, GRID, FACES, PART_PARAMS)


pytest.importorskip("jax_cfd.base")
CHANNEL_CELLS = (4, 8)


@pytest.fixture(scope="module")
def channel():
    with jax.enable_x64(True):
        return jax_cfd_channel(cells=CHANNEL_CELLS)


@every([8, [8], [2, 8], ["a", 8]])
def test_invalid_cells_are_refused(cells):
    with pytest.raises(UserError, match=r"cells"):
        jax_cfd_channel(cells=cells)


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"time_step": 1.1}, "advection"), ({"reynolds": 1.0, "time_step": 0.031}, "explicit friction")],
)
def test_time_step_beyond_stability_is_refused(channel, values, reason, x64):
    # Cells of 1.5 x 0.25: 1.5 U crosses one in 1 h/U, and friction at Re = 1 bears 1 / (2/1.5^2 + 2/0.25^2) = 0.0304.
    with pytest.raises(UserError, match=f"above the stability limit of {reason} on this grid"):
        channel.check(channel.with_params(**values).params, KEY)
