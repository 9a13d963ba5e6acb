"""Mixed conditions on sides as data: walls with a slip length, and sides through which heat is transferred."""

import jax
import jax.numpy as jnp
import pytest

from simkit import flow
from simkit.errors import UserError
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

SLIP = {"kind": "navier_slip", "slip_length": "slip"}


def channel(**sides):
    return flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 8, "from": -1, "to": 1, "lower": SLIP, "upper": SLIP} | sides,
        },
        viscosity=2.0,
        force={"x": "push"},
        scalars={
            "heat": {
                "diffusivity": 1.0,
                "sides": {"y": {"lower": 3, "upper": {"kind": "robin", "coefficient": "h", "outside": 1}}},
            }
        },
        method="adams_bashforth",
        implicit=["y"],
        parameters={"slip": 0.2, "h": 0.5, "push": 8.0, "time_step": 0.1},
    )


@every(
    [
        ({"kind": "wall", "slip_length": 0.1}, "on which the fluid sticks .a 'navier_slip' side takes one."),
        ("navier_slip", "axes.y.lower.slip_length is missing; give a number or an expression, or a table: slip length"),
        ({"kind": "navier_slip", "slip_length": "-slip"}, "is negative; choose 0 or a value above"),
    ]
)
def test_a_wrong_slip_length_is_one_line_with_its_remedy(side, message):
    with pytest.raises(UserError, match=message):
        simulation = channel(lower=side)
        simulation.check(simulation.params, jax.random.key(0))


def slippery(cells, slip="slip", method="runge_kutta", **more):
    side = {"kind": "navier_slip", "slip_length": slip}
    axes = {
        "x": {"cells": 4, "length": 4.0, "periodic": True},
        "y": {"cells": cells, "from": -1, "to": 1, "stretching": 2.0, "lower": side, "upper": side},
    }
    return flow.system(
        **{"axes": axes, "viscosity": 1.0, "force": {"x": 1.0}, "method": method} | more,
        parameters={"slip": 0.3, "time_step": 0.05},
    )


CUBE = {
    axis: {
        "cells": 4,
        "length": 1.0 + 0.1 * k,
        "lower": {"kind": "navier_slip", "slip_length": "slip"},
        "upper": "wall",
    }
    for k, axis in enumerate("xyz")
}
WARM = {"kind": "robin", "coefficient": "slip"}
BETWEEN = {axis: {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"} for axis in "xy"}


@every(
    {
        "a slip length that varies along the wall": {"slip": "0.3 + 0.1*sin(pi*x/2)"},
        "slip on three axes": {"axes": CUBE},
        "heat through sides of two axes": {
            "axes": BETWEEN,
            "scalars": {"heat": {"diffusivity": 1, "sides": {"x": {"lower": WARM}, "y": {"upper": WARM}}}},
        },
    }
)
def test_sides_that_implicit_friction_does_not_serve_are_explicit_by_default(settings):
    simulation = slippery(8, **settings)
    params = simulation.params | {"time_step": jnp.asarray(1e-3)}
    simulation.check(params, jax.random.key(0))
    begin = jax.eval_shape(simulation.init, params, jax.random.key(0))
    assert jax.eval_shape(simulation.step, begin, params)


def test_the_flux_through_a_side_that_transfers_heat_is_diagnosed():
    """Between 0 at y = 0 and 1 outside y = 1: the flux is D/(1 + D/h)."""
    axes = {
        "x": {"cells": 4, "length": 1.0, "periodic": True},
        "y": {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"},
    }
    sides = {"y": {"lower": 0, "upper": {"kind": "robin", "coefficient": 2, "outside": 1}}}
    heat = {"diffusivity": 0.5, "initial": "0.8*y", "sides": sides}
    simulation = flow.system(axes=axes, viscosity=1.0, scalars={"heat": heat})
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    found = simulation.diagnose(state, simulation.params)
    assert float(found["heat.flux_y_upper"]) == pytest.approx(0.4, rel=1e-12)
    assert float(found["heat.flux_y_lower"]) == pytest.approx(-0.4, rel=1e-12)


def test_a_velocity_on_sides_that_is_not_a_number_is_told_before_that_the_flows_do_not_balance():
    blown = {"kind": "inflow", "u": "sqrt(slip - 1)"}
    axes = {
        "x": {"cells": 8, "length": 1.0, "lower": blown, "upper": {"kind": "inflow", "u": 1}},
        "y": {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"},
    }
    simulation = slippery(8, axes=axes)
    with pytest.raises(UserError, match=r"axes\.x\.lower\.u: 'sqrt\(slip - 1\)' is nan at index"):
        simulation.check(simulation.params, jax.random.key(0))
