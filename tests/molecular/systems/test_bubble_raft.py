"""Bubble rafts: elastic moduli and their derivatives with respect to the diameter ratio."""

import pytest

from simkit.errors import UserError
from simkit.molecular import bubble_raft
from tests.every import every

pytestmark = pytest.mark.usefixtures("x64")


@every(
    ("wrong", "message"),
    [
        ({"repeats": (3, 3)}, "too small; choose at least 4 and 3"),
        ({"repeats": (10,)}, "give two numbers of unit cells"),
        ({"arrangement": -1}, "arrangement = -1 is negative"),
        ({"exponent": 1.5}, "exponent = 1.5 is below 2"),
        ({"force_tolerance": 2.0}, "force_tolerance = 2.0 is not between 0 and 1"),
    ],
)
def test_bad_configuration_is_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        bubble_raft(**wrong)
