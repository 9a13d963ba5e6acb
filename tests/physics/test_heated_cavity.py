"""Natural convection in a square cavity: published heat transfer, exact limits, symmetry and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load

pytestmark = pytest.mark.usefixtures("x64")

CELLS = 24
KEY = jax.random.key(0)


def cavity(cells, stretching=0.0):
    values = {"cells": cells, "stretching": stretching}
    given = {f"config.axes.{axis}.{key}": value for axis in "xy" for key, value in values.items()}
    return build(load("heated_cavity", given | {"precision": "float64"}))


@functools.cache
def compiled(steps):
    simulation = cavity(CELLS).with_params(time_step=4e-4)

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, KEY), params)
        return state, simulation.diagnose(state, params)

    return simulation, run


def flow(rayleigh, steps=1000):
    """The state and its diagnostics at t = steps * 4e-4, steady at 0.4."""
    simulation, run = compiled(steps)
    params = simulation.params | {"rayleigh": jnp.asarray(float(rayleigh))}
    return simulation, *run(params)


@pytest.mark.parametrize(
    ("rayleigh", "nusselt", "along_x", "along_y"), [(1e3, 1.118, 3.649, 3.697), (1e4, 2.243, 16.178, 19.617)]
)
def test_heat_and_velocity_are_those_of_de_vahl_davis(rayleigh, nusselt, along_x, along_y):
    _, state, found = flow(rayleigh)
    assert found["nusselt"] == pytest.approx(nusselt, rel=0.01)
    assert found["nusselt_cold"] == pytest.approx(float(found["nusselt"]), rel=1e-4)
    # The largest velocities through the lines x = 1/2 and y = 1/2, which are faces of this grid. A largest value
    # among cells of width h is less than that of the curve by (h/2)^2/2 times its curvature, about 100 times itself
    # at the walls of the higher Rayleigh number: up to 2 % of it.
    u, v = state.velocity
    assert jnp.max(u[CELLS // 2]) == pytest.approx(along_x, rel=0.02)
    assert jnp.max(v[:, CELLS // 2]) == pytest.approx(along_y, rel=0.02)


def test_fluid_without_buoyancy_conducts():
    """Without buoyancy the temperature is a line on any grid, and the Nusselt number 1."""
    simulation = cavity(8, 1.5).with_params(rayleigh=0.0, time_step=8e-4)
    state = jax.jit(segment(simulation, 5000))(simulation.init(simulation.params, KEY), simulation.params)
    # What is left of the start is exp(-pi^2 4 t) at t = 4; rounding of fluxes through cells of width 0.05.
    assert simulation.diagnose(state, simulation.params)["nusselt"] == pytest.approx(1, abs=1e-12)
    line = 0.5 - simulation.coordinates["x"][:, None]
    np.testing.assert_allclose(state.scalar["temperature"], np.broadcast_to(line, (8, 8)), rtol=0, atol=1e-13)


def test_flow_is_symmetric_under_rotation_by_half_a_turn():
    _, state, found = flow(1e4, steps=50)
    assert found["kinetic_energy"] > 1
    turned = jax.tree.map(lambda f: -f[::-1, ::-1], (state.scalar["temperature"], *state.velocity))
    for a, b in zip(turned, (state.scalar["temperature"], *state.velocity), strict=True):
        # Rounding of velocities of order 10, which instability does not multiply here.
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)
    assert abs(found["temperature.mean"]) < 1e-14
