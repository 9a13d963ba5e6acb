"""Each system on the page of scenarios in Python is the program of the scenario's file, in at most 30 lines."""

from simkit.scenario.catalog import list_scenarios
from tests.docs.systems import SYSTEMS

DATA = ("flow.domain", "molecular.system")


def test_every_scenario_from_data_is_on_the_page_in_at_most_30_lines():
    assert sorted(SYSTEMS) == sorted(one.name for one in list_scenarios()[0] if one.simulation in DATA)
    assert not [name for name, text in SYSTEMS.items() if len(text.splitlines()) > 30]
