"""The contract of further scenarios: bounces, a flow between walls, and dynamics of atoms."""

import pytest

from tests.scenarios.contract import Claims, contract_of


@pytest.fixture(scope="module", params=["bouncing_ball", "channel_flow", "nose_hoover"])
def contract(request):
    yield from contract_of(request.param)


class TestFurther(Claims):
    """Claims of the contract."""
