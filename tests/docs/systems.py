"""Systems on the page of scenarios in Python, compared with the scenarios' files."""

import re

import jax

from simkit import flow, molecular, rigid
from simkit.core import paths
from simkit.core.precision import precision
from simkit.scenario.catalog import find_scenario
from simkit.scenario.scenario import make
from tests.docs.pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
SYSTEMS = dict(re.findall(r"^`(\w+)`, in .*?^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def programs(simulation):
    """Return the programs of `init` and of `step` as text, including their constant arrays."""
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    start = jax.jit(simulation.init).lower(simulation.params, key)
    return start.as_text(), jax.jit(simulation.step).lower(state, simulation.params).as_text()


def check_program(name):
    """Assert that a system of the page is the program of its file."""
    scenario, names = find_scenario(name), {"flow": flow, "molecular": molecular, "rigid": rigid}
    with precision(scenario.run.precision):
        exec(SYSTEMS[name], names)
        made, read = names["simulation"], make(scenario)
        assert paths.leaves(made.params) == paths.leaves(read.params)
        assert programs(made) == programs(read)
