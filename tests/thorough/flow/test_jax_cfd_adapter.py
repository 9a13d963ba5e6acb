"""Step functions of jax-cfd as simulations, and replacements inside jax-cfd that leave JAX unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.flow.jax_cfd import from_jax_cfd
from tests.flow.test_jax_cfd_adapter import KEY, advance, box, periodic, run, vortex, walled

cfd = pytest.importorskip("jax_cfd.base")


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
