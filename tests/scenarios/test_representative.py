"""The contract of scenarios, for two of each domain; `make thorough` tests all of them."""

import pytest

from tests.scenarios.contract import Claims, contract_of

# Those of each domain that compile fastest, one of molecules a relaxation with an implicit derivative.
REPRESENTATIVE = ("asymmetric_top", "bouncing_ball", "channel_flow", "taylor_green", "nose_hoover", "trapped_charges")


@pytest.fixture(scope="module", params=REPRESENTATIVE)
def contract(request):
    yield from contract_of(request.param)


class TestRepresentative(Claims):
    """Claims of the contract."""
