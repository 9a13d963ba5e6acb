"""The contract of further scenarios: bounces, flows, dynamics, and a relaxation with implicit derivatives."""

import pytest

from tests.scenarios.contract import Claims, contract_of


@pytest.fixture(
    scope="module", params=["bouncing_ball", "channel_flow", "nose_hoover", "taylor_green", "trapped_charges"]
)
def contract(request):
    yield from contract_of(request.param)


class TestFurther(Claims):
    """Claims of the contract."""
