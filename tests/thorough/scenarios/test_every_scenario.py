"""The contract of every shipped scenario; a new scenario is tested without a change here."""

import jax
import pytest

from simkit.core.rollout import trajectory
from simkit.engine.driver import plan_of
from simkit.jobs.validation import validate
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.driving import drive
from tests.scenarios.contract import (
    Claims,
    assert_driven_is_whole,
    check_derivatives,
    contract_of,
)
from tests.scenarios.small import FEW_STEPS, NAMES


@pytest.fixture(scope="module", params=NAMES)
def contract(request):
    """Provide every scenario to all tests, one after the other."""
    yield from contract_of(request.param)


class TestEveryScenario(Claims):
    """Claims of the contract, and those that take the shipped size."""

    def test_driven_run_of_the_shipped_size_ends_in_the_state_of_the_trajectory_bit_for_bit(self, contract):
        fewer = {"config.dynamics.steps": 4} if contract.name == "binary_glass" else {}
        scenario = load(contract.name, {**FEW_STEPS, **fewer, "precision": "float64"})
        simulation = build(scenario)
        whole = jax.jit(trajectory(simulation, scenario.run.steps, scenario.run.every))
        pieces = list(drive(simulation, simulation.params, contract.key, plan_of(scenario)))
        assert_driven_is_whole(contract.name, pieces, whole(simulation.params, contract.key))

    def test_derivatives_of_further_objectives(self, contract):
        scenario, simulation = contract.to_the_end
        for objective in list(scenario.objectives)[1:]:
            check_derivatives(scenario, simulation, objective)

    def test_published_numbers_are_reproduced(self, contract):
        scenario = load(contract.name)
        assert scenario.validations
        missed = [check for check in validate(scenario) if not check.passed]
        assert not missed
