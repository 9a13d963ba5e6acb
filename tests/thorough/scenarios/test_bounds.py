"""Bounds of every flow scenario against the values that its factory accepts."""

import pytest

from tests.scenarios.small import FLOWS
from tests.scenarios.test_bounds import check_bounds

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", FLOWS)
def test_no_value_within_the_bounds_is_refused(name):
    check_bounds(name)
