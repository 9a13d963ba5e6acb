"""Each system on the page of scenarios in Python is the program of the scenario's file, in at most 30 lines."""

import re

import jax
import pytest

from simkit import flow, molecular
from simkit.core import paths
from simkit.core.precision import precision
from simkit.scenario.catalog import find_scenario, list_scenarios
from simkit.scenario.making import make
from tests.docs.pages import REPOSITORY

DATA = ("flow.domain", "molecular.system")
PAGE = (REPOSITORY / "docs" / "systems_in_python.md").read_text(encoding="utf-8")
SYSTEMS = dict(re.findall(r"^`(\w+)`, in .*?^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def programs(simulation):
    """Return the programs of `init` and of `step` as text, including their constant arrays."""
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    start = jax.jit(simulation.init).lower(simulation.params, key)
    return start.as_text(), jax.jit(simulation.step).lower(state, simulation.params).as_text()


def test_every_scenario_from_data_is_on_the_page():
    assert sorted(SYSTEMS) == sorted(one.name for one in list_scenarios()[0] if one.simulation in DATA)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_of_the_page_is_the_program_of_its_file(name):
    assert len(SYSTEMS[name].splitlines()) <= 30
    scenario, names = find_scenario(name), {"flow": flow, "molecular": molecular}
    with precision(scenario.run.precision):
        exec(SYSTEMS[name], names)
        made, read = names["simulation"], make(scenario)
        assert paths.leaves(made.params) == paths.leaves(read.params)
        assert programs(made) == programs(read)
