"""Implicit drag as data: porous media, and solids for which a large coefficient stands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def end(simulation, steps, **params):
    """The last state, as a function of parameters that differ from their defaults."""

    @jax.jit
    def run(params):
        begin = simulation.init(params, jax.random.key(0))
        return jax.lax.scan(lambda s, _: (simulation.step(s, params), None), begin, length=steps)[0]

    return run(jax.tree.map(jnp.asarray, simulation.params | params))


def test_flow_in_a_porous_channel_is_that_of_brinkman_with_its_derivative_at_any_time_step():
    """U = G/k (1 - cosh(m y)/cosh(m)), m^2 = k/nu, between walls at rest."""
    simulation = flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 48, "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        viscosity=0.1,
        force={"x": 2.0},
        drag={"coefficient": "k"},
        method="adams_bashforth",
        parameters={"k": 10.0, "time_step": 1.0},
    )
    y, m = jnp.asarray(simulation.coordinates["y"]), 10.0

    def exact(k):
        m = jnp.sqrt(k / 0.1)
        return 2.0 / k * (1 - jnp.cosh(m * y) / jnp.cosh(m))

    profile = lambda k: end(simulation, 60, k=k).velocity[0][0]  # noqa: E731
    found, slope = jax.jvp(profile, (10.0,), (1.0,))
    # Second differences over cells of h err by (m h)^2/12 of the layer, 1.4 %; k dt is 10.
    bound = (m * 2 / 48) ** 2 / 12 * 0.2
    assert np.max(np.abs(found - exact(10.0))) < bound
    assert np.max(np.abs(slope - jax.jvp(exact, (10.0,), (1.0,))[1])) < bound / 10


@every(["runge_kutta", "adams_bashforth"])
def test_drag_alone_is_exact_at_any_time_step_and_draws_fluid_along(method):
    around = {"cells": 4, "length": 1.0, "periodic": True}
    simulation = flow.system(
        axes={"x": around, "y": around},
        viscosity=0.0,
        initial={"u": 3.0},
        drag={"coefficient": "k", "u": 1.0, "v": "slide"},
        method=method,
        parameters={"k": 2.0, "slide": -0.5, "time_step": 0.25},
    )
    for k in (0.0, 1e-3, 2.0, 1e8):
        u, v = end(simulation, 4, k=k).velocity
        left = np.exp(-k)
        np.testing.assert_allclose(u, 1 + 2 * left, rtol=1e-12)
        np.testing.assert_allclose(v, -0.5 * (1 - left), rtol=1e-9, atol=1e-12)


@every([("runge_kutta", 1e2), ("runge_kutta", 1e7), ("adams_bashforth", 1e7)])
def test_a_plug_in_a_duct_is_stable_and_takes_the_pressure_that_darcy_says(method, k):
    """Through a plug the pressure falls by k u times its length; one of half the height leads the flow around it."""

    def duct(where):
        return flow.system(
            axes={
                "x": {"cells": 24, "to": 3.0, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
                "y": {"cells": 8, "to": 1.0, "lower": "free_slip", "upper": "free_slip"},
            },
            viscosity=0.01,
            initial={"u": 1.0},
            drag={"coefficient": f"where({where}, k, 0)"},
            method=method,
            parameters={"k": k, "time_step": 0.01},
        )

    if k < 1e3:
        pressure = end(duct("abs(x - 1.5) < 0.4375"), 40).pressure
        assert float(pressure[0, 0] - pressure[-1, 0]) == pytest.approx(0.875 * k, rel=1e-3)
    u, v = end(duct("(abs(x - 1.5) < 0.5) and (y < 0.5)"), 150).velocity
    assert 2 < np.max(u) < 2.5 and np.max(np.abs(v)) < 2
    # What leaks is the pressure gradient, up to (2 u)^2/2 in a cell of 1/8, over k, and times its change in a step.
    assert np.max(np.abs(u[9:16, :4])) < 20 / k + 1e-4
