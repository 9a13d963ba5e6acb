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
