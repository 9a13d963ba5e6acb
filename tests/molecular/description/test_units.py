"""Systems of units by name: their constants, and what formulas and labels make of them."""

import jax
import pytest

from simkit import molecular
from simkit.molecular.description.units import SYSTEMS


def test_constants_of_unit_systems_are_those_of_codata_and_other_programs():
    # OpenMM 138.935457645 and 0.00831446261815324; CODATA 2018: 14.3996454784, 8.617333262145e-5.
    md, metal, real = (SYSTEMS[name].constants for name in ("md", "metal", "real"))
    assert md["coulomb_constant"] == pytest.approx(138.93545764, rel=1e-10)
    assert (md["kelvin"], md["picosecond"]) == pytest.approx((0.00831446261815324, 1.0), rel=1e-14)
    assert metal["coulomb_constant"] == pytest.approx(14.3996454784, rel=1e-10)
    assert metal["kelvin"] == pytest.approx(8.617333262145e-5, rel=1e-12)
    assert metal["gigapascal"] == pytest.approx(1 / 160.2176634, rel=1e-14)
    # LAMMPS: 48.88821291 fs, 68568.415 atmospheres.
    assert (1 / real["femtosecond"], 1 / real["atmosphere"]) == pytest.approx((48.88821291, 68568.415), rel=1e-7)
    assert real["gram_per_cubic_centimeter"] == pytest.approx(0.602214076, rel=1e-14)


def test_formulas_take_constants_of_the_units_unless_a_parameter_has_their_name(x64):
    def energy(**parameters):
        pair = molecular.system(
            particles={"ion": {"charge": 1.0}},
            start={"positions": [[0, 0, 0], ["2*angstrom", 0, 0]]},
            interactions=[{"potential": "coulomb"}],
            relax={"force_tolerance": 1e-5},
            units="md",
            parameters={"unused": 1.0} | parameters,
        )
        state = pair.init(pair.params, jax.random.key(0))
        assert pair.quantities["energy"].unit == "kJ/mol"
        return float(pair.diagnose(state, pair.params)["energy"])

    assert energy() == pytest.approx(138.93545764 / 0.2, rel=1e-9)
    assert energy(coulomb_constant=2.0, angstrom=1.0) == pytest.approx(1.0, rel=1e-12)
