"""What tests/scenario claims of a few shipped scenarios and factories, of all of them."""

import pytest

from tests.scenario import shipped
from tests.scenarios.small import small


@pytest.mark.parametrize("name", shipped.NAMES)
def test_every_shipped_scenario_builds(name):
    shipped.check_that_it_builds(name)


@pytest.mark.parametrize("name", shipped.NAMES)
def test_shipped_files_follow_the_schema_of_their_simulation(name, capsys):
    shipped.check_that_it_follows_its_schema(name, capsys)


@pytest.mark.parametrize("name", shipped.WITHOUT_ARGUMENTS)
def test_the_result_of_a_factory_becomes_a_scenario(name):
    shipped.check_that_a_factory_becomes_a_scenario(name)


@pytest.mark.parametrize("name", shipped.FLOWS)
def test_values_that_are_not_positive_are_refused(name):
    shipped.check_that_values_that_are_not_positive_are_refused(small(name, precision="float32"))
