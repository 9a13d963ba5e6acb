"""Sides of several parts: slots in walls, partly sliding lids, and refusals."""

import jax
import numpy as np
import pytest

from tests.flow.description.test_parts_of_sides import SLOT, layer

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("upper", ["pressure", "outflow"])
@pytest.mark.parametrize("implicit", [[], ["y"], ["x", "y"]])
def test_a_jet_enters_through_its_slot_only_and_flows_out(upper, implicit):
    made = layer(SLOT, upper=upper, implicit=implicit)
    key = jax.random.key(0)
    made.check_values(made.params, key)
    run = jax.jit(lambda p: jax.lax.fori_loop(0, 5, lambda _, s: made.step(s, p), made.init(p, key)))
    state = run(made.params)
    entering = np.asarray(state.velocity[0])[0]
    # Centers of faces at 0.1 and 0.3 on both sides are within 0.35.
    expected = np.where(np.abs(np.linspace(-0.9, 0.9, 10)) < 0.35, 1 + 0.5 * np.sin(0.05), 0)
    np.testing.assert_allclose(entering, expected, rtol=0, atol=1e-14)
    numbers = made.diagnose(state, made.params)
    np.testing.assert_allclose(numbers["x_lower.flow"], 0.8 * (1 + 0.5 * np.sin(0.05)), rtol=1e-13)
    np.testing.assert_allclose(numbers["x_upper.flow"], -numbers["x_lower.flow"], rtol=1e-12)
    assert float(numbers["divergence"]) < 1e-12


def test_a_part_of_a_lid_slides():
    lid = ["wall", {"kind": "wall", "v": 2, "where": "y > 0.5"}, {"kind": "wall", "v": "-stream", "where": "y < -0.5"}]
    made = layer(lid, upper="wall")
    made.check_values(made.params, jax.random.key(0))
    state = jax.jit(lambda p: made.step(made.init(p, jax.random.key(0)), p))(made.params)
    v = np.asarray(state.velocity[1])[0]
    assert v[9] > 0.01 > abs(v[5]) and v[1] < -0.005
