"""The contract of one scenario of each domain, of those that compile fastest.

tests/reliability/test_contract.py tests another of each domain, tests/thorough/scenarios all of them.
"""

import pytest

from tests.scenarios.contract import Claims, contract_of


@pytest.fixture(scope="module", params=["asymmetric_top", "taylor_green", "nose_hoover"])
def contract(request):
    yield from contract_of(request.param)


class TestRepresentative(Claims):
    """Claims of the contract."""
