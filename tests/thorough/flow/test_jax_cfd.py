"""Simulations of jax-cfd: equations, parts, channels and flows in boxes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.flow import jax_cfd_channel
from simkit.flow.jax_cfd import from_jax_cfd
from tests.flow.test_jax_cfd import (
    CHANNEL_CELLS,
    KEY,
    advance,
    box,
    periodic,
    run,
    vortex,
    walled,
)

cfd = pytest.importorskip("jax_cfd.base")


@pytest.fixture(scope="module")
def channel():
    with jax.enable_x64(True):
        return jax_cfd_channel(cells=CHANNEL_CELLS)


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


pytest.importorskip("jax_cfd.base")


def with_profile(channel, state, profile):
    """Return a state whose velocity along the channel has this value in each row of cells."""
    u, v = state.flow
    flat = jnp.broadcast_to(jnp.asarray(profile), CHANNEL_CELLS)
    array = jax.tree.map(lambda old: flat, u)
    return type(state)(flow=(array, v), iteration=state.iteration)


def test_discrete_poiseuille_flow_is_steady(channel, x64):
    params = channel.with_params(perturbation=0.0, forcing=0.7, reynolds=10.0, time_step=0.02).params
    y = channel.coordinates["y"]
    steady = 1.5 * 0.7 * (1 + 1 / CHANNEL_CELLS[1] ** 2 - y**2)
    state = with_profile(channel, channel.init(params, KEY), steady)
    after = channel.step(state, params)
    # One addition to numbers of about 1.
    np.testing.assert_allclose(after.flow[0].data, np.broadcast_to(steady, CHANNEL_CELLS), rtol=0, atol=1e-15)
    found = channel.diagnose(after, params)
    assert float(found["bulk_velocity"]) == pytest.approx(0.7 * (1 + 2 / CHANNEL_CELLS[1] ** 2), rel=1e-14)
    assert float(found["centerline_velocity"]) == pytest.approx(1.5 * 0.7 * (1 + 1 / CHANNEL_CELLS[1] ** 2), rel=1e-14)


def test_flow_starts_as_a_parabola_and_eddies_without_divergence(channel, x64):
    still = channel.init(channel.with_params(perturbation=0.0).params, KEY)
    eddies = channel.init(channel.with_params(initial_velocity=0.0).params, KEY)
    both = channel.init(channel.params, KEY)
    y = channel.coordinates["y"]
    np.testing.assert_allclose(still.flow[0].data[0], 1.5 * (1 - y**2), rtol=1e-15)
    np.testing.assert_allclose(both.flow[0].data, still.flow[0].data + eddies.flow[0].data, rtol=0, atol=1e-15)
    assert float(jnp.abs(eddies.flow[0].data).max()) > 0.1
    assert float(channel.diagnose(both, channel.params)["divergence"]) < 1e-14
