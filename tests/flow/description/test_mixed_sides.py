"""Mixed conditions on sides as data: walls with a slip length, and sides through which heat is transferred."""

import jax
import jax.numpy as jnp
import numpy as np
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


def test_slip_and_heat_transfer_give_poiseuille_flow_and_steady_conduction_with_their_derivatives():
    """Velocity G/nu ((H^2 - 4 y^2)/8 + slip H/2); temperature 3 - 2 Bi/(1 + Bi) (y + H/2)/H with Bi = h H/D."""
    simulation = channel()
    y = jnp.asarray(simulation.coordinates["y"])

    @jax.jit
    def steady(slip, h):
        params = jax.tree.map(jnp.asarray, simulation.params | {"slip": slip, "h": h})
        begin = simulation.init(params, jax.random.key(0))
        state = jax.lax.scan(lambda s, _: (simulation.step(s, params), None), begin, length=600)[0]
        return state.velocity[0][0], state.scalar["heat"][0]

    def exact(slip, h):
        biot = h * 2.0
        velocity = 8.0 / 2.0 * ((4 - 4 * y**2) / 8 + slip)
        return velocity, 3 - 2 * biot / (1 + biot) * (y + 1) / 2

    # Both are exact on equal cells; the slowest mode decays by exp(-2 0.55^2 60) = 2e-16, for the largest slip length.
    for values in ((0.2, 0.5), (0.0, 0.0), (3.0, 1e9)):
        for found, wanted in zip(steady(*values), exact(*values), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-9 * np.max(wanted))
    for direction in ((1.0, 0.0), (0.0, 1.0)):
        found, wanted = (jax.jvp(f, (0.2, 0.5), direction)[1] for f in (steady, exact))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


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


@every(["runge_kutta", "adams_bashforth"])
def test_friction_on_walls_with_slip_is_implicit_by_default_and_of_second_order(method):
    errors = []
    for cells in (16, 32):
        # The thinnest cells allow explicit steps of 1e-3 and 7e-5.
        simulation = slippery(cells, method=method)
        simulation.check(simulation.params, jax.random.key(0))

        @jax.jit
        def end(params, simulation=simulation):
            begin = simulation.init(params, jax.random.key(0))
            return jax.lax.fori_loop(0, 600, lambda _, state: simulation.step(state, params), begin)

        y = simulation.coordinates["y"]
        # The slowest mode decays at a rate of 1.4: exp(-1.4 * 30) is below round-off.
        errors.append(np.max(np.abs(end(simulation.params).velocity[0][0] - (1 - y**2 + 0.6) / 2)))
    assert 3.5 < errors[0] / errors[1] < 4.5


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
