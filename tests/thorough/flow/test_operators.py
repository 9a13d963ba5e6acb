"""Longer tests of operators."""

import pytest

from tests.flow.flows import over
from tests.flow.test_operators import SOME, measured

pytestmark = pytest.mark.usefixtures("x64")


@over(SOME)
def test_gradient_is_minus_the_adjoint_of_divergence(place):
    found = measured(place)
    # Sums of up to 400 terms of size 1/dx or less, at most 10, each rounded to 1e-16.
    assert abs(found["work of the pressure"] + found["expansion"]) < 1e-12
