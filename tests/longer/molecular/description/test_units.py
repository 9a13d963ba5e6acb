"""Systems of units by name: their constants, and what formulas and labels make of them."""

import jax
import pytest

from simkit import molecular


def test_formulas_take_constants_of_the_units_unless_a_parameter_has_their_name(x64):
    pair = molecular.system(
        particles={"ion": {"charge": 1.0}},
        start={"positions": [[0, 0, 0], ["2*angstrom + nanometer", 0, 0]]},
        interactions=[{"potential": "coulomb"}],
        relax={"force_tolerance": 1e-5},
        units="md",
        parameters={"angstrom": 0.3},
    )
    state = pair.init(pair.params, jax.random.key(0))
    assert float(pair.diagnose(state, pair.params)["energy"]) == pytest.approx(138.93545764 / 1.6, rel=1e-9)
    assert pair.quantities["energy"].unit == "kJ/mol"
