"""The contract of the scenario that compiles fastest.

tests/reliability/test_contract.py tests three others, tests/thorough/scenarios all of them.
"""

import pytest

from tests.scenarios.contract import Claims, contract_of


@pytest.fixture(scope="module", params=["asymmetric_top"])
def contract(request):
    yield from contract_of(request.param)


class TestRepresentative(Claims):
    """Claims of the contract."""
