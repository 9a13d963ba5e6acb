"""The contract of further scenarios: bounces, a driven flow with walls, and a relaxation with an implicit derivative."""

import pytest

from tests.scenarios.contract import Claims, contract_of


@pytest.fixture(scope="module", params=["bouncing_ball", "channel_flow", "trapped_charges"])
def contract(request):
    yield from contract_of(request.param)


class TestFurther(Claims):
    """Claims of the contract."""
