"""Bounds of flow scenarios against the values that their factories accept."""

import jax
import pytest

from simkit.flow.spectral.tollmien_schlichting import REYNOLDS
from simkit.scenario.build import build
from simkit.scenario.loading import load
from tests.scenarios.small import NAMES, small

pytestmark = pytest.mark.usefixtures("x64")

FLOWS = [name for name in NAMES if load(name).simulation.startswith("flow.")]


@pytest.mark.parametrize("name", FLOWS)
def test_no_value_within_the_bounds_is_refused(name):
    # Every body that fits into the channel as shipped fits there on few cells too, if they resolve it.
    finer = {f"config.axes.{axis}.refined.cell": 0.1 for axis in "xy"} if name == "cylinder_in_channel" else {}
    scenario = small(name, **finer)
    simulation = build(scenario)
    # How long a time step may be depends on the others, and its message says so.
    shortest = {"time_step": scenario.parameters["time_step"].bounds[0]}
    assert simulation.check is not None or name == "kolmogorov_turbulence"
    if simulation.check is not None:
        for parameter, declared in scenario.parameters.items():
            for value in declared.bounds if parameter != "time_step" else declared.bounds[:1]:
                simulation.check(simulation.with_params(**shortest | {parameter: value}).params, jax.random.key(0))


def test_tollmien_schlichting_waves_are_offered_wherever_they_are_known():
    assert load("tollmien_schlichting").parameters["reynolds"].bounds == REYNOLDS
