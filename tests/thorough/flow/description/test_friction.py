"""Mean shear stress on the walls of a side that has inflows too, beside exact flows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)


def duct(cells, lower):
    """A duct in which w = cos(x) sinh(y): no pressure, no force, a sliding upper wall."""
    return flow.system(
        axes={
            "x": {"cells": cells, "to": np.pi, "lower": "pressure", "upper": "pressure"},
            "y": {"cells": cells, "to": 1, "lower": lower, "upper": {"kind": "wall", "w": "cos(x)*sinh(1)"}},
            "z": {"cells": 4, "length": 1, "periodic": True},
        },
        viscosity="nu",
        initial={"w": "cos(x)*sinh(y)"},
        implicit=["y"],
        largest_speed=2,
        parameters={"nu": 0.3, "half": np.pi / 4, "time_step": 0.02},
    )


@pytest.mark.parametrize(
    ("lower", "ends"),
    [
        (["wall", {"kind": "inflow", "v": 0, "where": "x > half"}], (0, np.pi / 4)),
        ([{"kind": "inflow", "v": 0}, {"kind": "wall", "where": "x > half"}], (np.pi / 4, np.pi)),
    ],
)
def test_friction_on_a_part_is_that_of_an_exact_flow(lower, ends):
    errors = []
    exact = 0.3 * (np.sin(ends[1]) - np.sin(ends[0])) / (ends[1] - ends[0])
    for cells in (8, 16):
        made = duct(cells, lower)
        made.check_values(made.params, KEY)
        run = jax.jit(lambda p, made=made: jax.lax.fori_loop(0, 50, lambda _, s: made.step(s, p), made.init(p, KEY)))
        numbers = made.diagnose(run(made.params), made.params)
        errors.append(abs(float(numbers["y_lower.shear_z"]) - exact))
        assert abs(float(numbers["y_lower.shear_x"])) < 1e-12
    assert errors[1] < 3e-3 * abs(exact)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)


def layer(lower, periodic=True, cells=8):
    x = {"periodic": True} if periodic else {"lower": "wall", "upper": "wall"}
    return flow.system(
        axes={"x": {"cells": cells, "length": 2, **x}, "y": {"cells": 6, "to": 1, "lower": lower, "upper": "pressure"}},
        viscosity="nu",
        initial={"stream_function": "y**2*(1 + 0.5*cos(pi*x))/2"},
        parameters={"nu": 0.2, "end": 0.5, "time_step": 0.01},
    )


def test_friction_is_zero_while_there_is_no_wall_and_follows_it():
    made = layer([{"kind": "inflow", "v": 0}, {"kind": "wall", "where": "x < 1 - 50*time"}])
    assert made.quantities["y_lower.shear_x"].doc == (
        "mean shear stress over density of the flow on the walls of y lower, along x"
    )

    def run(params):
        def advance(state, _):
            state = made.step(state, params)
            return state, made.diagnose(state, params)["y_lower.shear_x"]

        return jax.lax.scan(advance, made.init(params, KEY), length=3)[1]

    found = jax.jit(run)(made.params)
    assert found[0] > 0.1 and found[1] == found[2] == 0
    slopes = jax.jit(jax.jacfwd(run))(made.params)
    assert jnp.isfinite(jnp.stack(list(slopes.values()))).all()
