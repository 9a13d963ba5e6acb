"""Onset of jamming: stages, derivatives, units, and refused arguments."""

import pytest

from simkit.errors import UserError
from simkit.molecular import jamming as jamming_of
from tests.every import every


@every(
    ("values", "message"),
    [
        ({"particles": 17}, "even number, at least 16"),
        ({"dimension": 3, "particles": 32}, "at least 64 in three dimensions"),
        ({"dimension": 4}, "choose 2"),
        ({"exponent": 1.5}, "below 2"),
        ({"force_tolerance": 0.1}, "between 0 and 0.01"),
        ({"minimizer": "newton"}, "unknown minimizer"),
    ],
)
def test_impossible_requests_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        jamming_of(**values)
