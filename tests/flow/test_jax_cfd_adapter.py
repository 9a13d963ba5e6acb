"""Step functions of jax-cfd as simulations, and replacements inside jax-cfd that leave JAX unchanged."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.flow.jax_cfd import from_jax_cfd, from_jax_cfd_spectral, on_current_jax

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


def test_steps_are_those_of_jax_cfd(x64):
    simulation, grid = periodic(), box()
    params = simulation.params
    state = run(periodic, 10)(params, KEY)
    theirs = vortex(grid, params)
    step = jax.jit(lambda v: advance(grid, params, convect=cfd.advection.convect_linear)(v))
    for _ in range(10):
        theirs = step(theirs)
    for ours, expected in zip(state.flow, theirs, strict=True):
        # The same arithmetic on numbers below 1, compiled as one loop.
        np.testing.assert_allclose(ours.data, expected.data, rtol=0, atol=1e-13)
    assert int(state.iteration) == 10


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


def test_frames_hold_the_flow_at_cell_centers(x64):
    simulation = periodic()
    seen = jax.jit(simulation.observe)(simulation.init(simulation.params, KEY), simulation.params)
    x, y = np.meshgrid(simulation.coordinates["x"], simulation.coordinates["y"], indexing="ij")
    # Interpolation and differences over h = 0.39: h^2/8 and h^2/6 plus that, of values up to 1 and 2.
    np.testing.assert_allclose(seen["u"], np.cos(x) * np.sin(y), rtol=0, atol=0.02)
    np.testing.assert_allclose(seen["v"], -np.sin(x) * np.cos(y), rtol=0, atol=0.02)
    np.testing.assert_allclose(seen["vorticity"], -2 * np.cos(x) * np.cos(y), rtol=0, atol=2 * 0.046)
    np.testing.assert_allclose(seen["speed"], np.hypot(seen["u"], seen["v"]), rtol=1e-12)
    assert simulation.dimensions["vorticity"] == ("x", "y") and set(simulation.coordinates["sides"]) == {"periodic"}


def test_walled_flow_becomes_poiseuille_flow(x64):
    simulation = walled()
    # The slowest wave decays as exp(-pi^2/4 nu t): to 1e-8 at t = 7.5.
    state = run(walled, 2500)(simulation.params, KEY)
    y = simulation.coordinates["y"]
    # The parabola c - y^2 has opposite values half a cell inside and outside the wall: c = 1 + h^2/4.
    np.testing.assert_allclose(state.flow[0].data[0], 1 - y**2 + (1 / 8) ** 2 / 4, rtol=0, atol=1e-7)
    assert simulation.coordinates["sides"].tolist() == ["periodic", "periodic", "wall", "wall"]


def test_derivative_through_walls_is_the_central_difference(x64):
    checked = check_gradient(Objective(walled(), "kinetic_energy", steps=20), walled().params, KEY, ["viscosity"])
    assert float(checked.derivative["viscosity"]) == pytest.approx(float(checked.difference["viscosity"]), rel=1e-7)


def test_members_of_an_ensemble_are_single_runs(x64):
    simulation = periodic()
    many = ensemble(simulation, ["viscosity"])
    params = {**simulation.params, "viscosity": jnp.asarray([0.05, 0.1])}
    states = jax.jit(lambda p, k: segment(many, 10)(many.init(p, k), p))(params, jax.random.split(KEY, 2))
    alone = run(periodic, 10)(simulation.params, KEY)
    # Vectorized code may round the last bit differently.
    np.testing.assert_allclose(states.flow[0].data[1], alone.flow[0].data, rtol=0, atol=1e-13)


def test_a_flow_may_hold_more_than_a_velocity(x64):
    grid = box()

    def step(flow, params):
        velocity, dye = flow
        rate = cfd.advection.advect_linear(dye, velocity)
        moved = cfd.grids.GridVariable(dye.array + params["time_step"] * rate, dye.bc)
        return advance(grid, params, convect=cfd.advection.convect_linear)(velocity), moved

    def initial(params, key):
        dye = cfd.grids.GridArray(jnp.ones(grid.shape), grid.cell_center, grid)
        velocity = vortex(grid, {"speed": 1.0})
        return velocity, cfd.grids.GridVariable(dye, velocity[0].bc)

    simulation = from_jax_cfd(
        step,
        grid,
        initial,
        {"viscosity": 0.1, "time_step": 0.01},
        velocity=lambda flow: flow[0],
        observe=lambda flow, params: {"dye": flow[1].data},
        diagnose=lambda flow, params: {"mean_dye": jnp.mean(flow[1].data)},
        dimensions={"dye": ["x", "y"]},
    )
    state = jax.jit(lambda p, k: segment(simulation, 3)(simulation.init(p, k), p))(simulation.params, KEY)
    # Uniform dye stays uniform in a flow without divergence.
    np.testing.assert_allclose(simulation.observe(state, simulation.params)["dye"], 1, rtol=0, atol=1e-13)
    assert float(simulation.diagnose(state, simulation.params)["mean_dye"]) == pytest.approx(1, rel=1e-13)
    assert simulation.dimensions["dye"] == ("x", "y")


def test_three_dimensions(x64):
    grid = box(8, 3)
    conditions = cfd.boundaries.periodic_boundary_conditions(3)

    def initial(params, key):
        arrays = jax.random.normal(key, (3, *grid.shape))
        parts = zip(arrays, grid.cell_faces, strict=True)
        noise = tuple(cfd.grids.GridVariable(cfd.grids.GridArray(a, o, grid), conditions) for a, o in parts)
        return cfd.pressure.projection(noise)

    def step(velocity, params):
        return advance(grid, params, convect=cfd.advection.convect_linear)(velocity)

    simulation = from_jax_cfd(step, grid, initial, {"viscosity": 0.1, "time_step": 0.01})

    @jax.jit
    def seen_after(params, key):
        state = segment(simulation, 2)(simulation.init(params, key), params)
        return simulation.observe(state, params), simulation.diagnose(state, params)

    seen, numbers = seen_after(simulation.params, KEY)
    # Round-off of differences of numbers below 4 over cells of 0.8.
    assert float(numbers["divergence"]) < 1e-13
    assert sorted(seen) == ["speed", "u", "v", "w"] and all(seen[n].shape == (8, 8, 8) for n in seen)
    assert set(simulation.coordinates) == {"x", "y", "z", "sides"}


@pytest.mark.parametrize("fails", [False, True])
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


def test_running_does_not_change_jax(x64):
    before = hasattr(jax, "tree_map")
    run(walled, 1)(walled().params, KEY)
    assert hasattr(jax, "tree_map") == before
    assert cfd.equations.jax is jax


def test_a_missing_jax_cfd_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax_cfd.base", None)
    with pytest.raises(UserError, match=r"^jax-cfd cannot be imported .*; install it with: pip install jax-cfd$"):
        from_jax_cfd(lambda v, p: v, None, lambda p, k: None, {"time_step": 1.0})


def velocity_on(grid):
    return lambda params, key: vortex(grid, {"speed": 1.0})


PARAMS = {"time_step": 0.1}
MISTAKES = {
    "no time step": (lambda v, p: v, box(), velocity_on(box()), {"dt": 0.1}, "params has no 'time_step'; add it"),
    "no grid": (lambda v, p: v, (16, 16), velocity_on(box()), PARAMS, r"grid is \(16, 16\); give a jax_cfd"),
    "one dimension": (lambda v, p: v, box(16, 1), velocity_on(box()), PARAMS, "of 2 or 3 dimensions"),
    "arrays": (lambda v, p: v, box(), lambda p, k: jnp.ones((2, 16, 16)), PARAMS, "give a tuple of 2 GridVariables"),
    "another grid": (lambda v, p: v, box(8), velocity_on(box()), PARAMS, "2 GridVariables on the grid"),
    "one component": (lambda v, p: v[:1], box(), velocity_on(box()), PARAMS, "must return the flow it is given"),
    "a time step of its own": (
        lambda v, p: v,
        box(),
        velocity_on(box()),
        PARAMS,
        r"params\['time_step'\] has no effect: the step does not depend on it; build the step from it, or remove it",
    ),
    "a parameter without effect": (
        lambda v, p: advance(box(), {"viscosity": 0.1, **p})(v),
        box(),
        velocity_on(box()),
        PARAMS | {"viscositi": 0.1},
        r"params\['viscositi'\] has no effect: nothing depends on it",
    ),
    "components swapped": (
        lambda v, p: v[::-1],
        box(),
        velocity_on(box()),
        PARAMS,
        "the same structure, grid, offsets",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_reported_in_one_line(mistake):
    step, grid, initial, params, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message) as caught:
        from_jax_cfd(step, grid, initial, params)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (jnp.ones((16, 16)), r"float\d+ of shape \(16, 16\) .*; give a complex array of shape \(16, 9\)"),
        (jnp.ones((16, 8), complex), r"of shape \(16, 8\)"),
        ((jnp.ones((16, 9), complex),), "tuple of shape None"),
    ],
)
def test_vorticity_of_another_kind_is_refused(start, message):
    with pytest.raises(UserError, match=message) as caught:
        from_jax_cfd_spectral(lambda w, p: w, box(), lambda p, k: start, PARAMS)
    assert "\n" not in str(caught.value)


def test_spectral_grid_is_checked():
    with pytest.raises(UserError, match="of 2 dimensions"):
        from_jax_cfd_spectral(lambda w, p: w, box(8, 3), lambda p, k: jnp.ones(3), PARAMS)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_state_has_the_requested_precision_for_any_start(precision):
    with jax.enable_x64(precision == "float64"):
        start = np.ones((16, 9), np.complex64)
        simulation = from_jax_cfd_spectral(
            lambda w, p: w * p["time_step"], box(), lambda p, k: jnp.asarray(start), PARAMS
        )
        state = jax.eval_shape(simulation.step, simulation.init(simulation.params, KEY), simulation.params)
        assert state.flow.dtype == precision and state.flow.shape == (2, 16, 9)
