"""Longer tests of operators."""

import pytest

from tests.flow.test_operators import SOME, measured
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every(SOME)
def test_gradient_is_minus_the_adjoint_of_divergence(place):
    found = measured(place)
    # Sums of up to 400 terms of size 1/dx or less, at most 10, each rounded to 1e-16.
    assert abs(found["work of the pressure"] + found["expansion"]) < 1e-12


@every(SOME)
def test_advection_conserves_kinetic_energy_of_a_solenoidal_flow(place):
    found = measured(place)
    assert found["size of that power"] > 0.1
    # Round-off of a mean of terms of this size; without divergence the exact value is zero.
    assert abs(found["power of central advection"]) < 1e-13 * found["size of that power"]
