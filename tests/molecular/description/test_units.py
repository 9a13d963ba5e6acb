"""Systems of units by name: their constants, and what formulas and labels make of them."""

import pytest

from simkit.molecular.description.units import SYSTEMS


def test_constants_of_unit_systems_are_those_of_codata_and_other_programs():
    # OpenMM 138.935457645 and 0.00831446261815324; CODATA 2018: 14.3996454784, 8.617333262145e-5.
    md, metal, real = (SYSTEMS[name].constants for name in ("md", "metal", "real"))
    assert md["coulomb_constant"] == pytest.approx(138.93545764, rel=1e-10)
    assert (md["kelvin"], md["picosecond"]) == pytest.approx((0.00831446261815324, 1.0), rel=1e-14)
    assert metal["coulomb_constant"] == pytest.approx(14.3996454784, rel=1e-10)
    assert metal["kelvin"] == pytest.approx(8.617333262145e-5, rel=1e-12)
    assert metal["gigapascal"] == pytest.approx(1 / 160.2176634, rel=1e-14)
    # LAMMPS has 48.88821291 fs; 4184 J / 101325 Pa, per mole and cubic angstrom.
    assert 1 / real["femtosecond"] == pytest.approx(48.88821291, rel=1e-9)
    assert 1 / real["atmosphere"] == pytest.approx(4184e30 / 101325 / 6.02214076e23, rel=1e-14)
    assert real["gram_per_cubic_centimeter"] == pytest.approx(0.602214076, rel=1e-14)
