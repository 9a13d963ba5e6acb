"""Refusal of unphysical parameter values that the bounds of a file allow."""

import dataclasses
import functools

import pytest

from simkit.errors import UserError
from simkit.flow.composed.system import system
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.registry import FACTORIES
from simkit.scenario.sections import ParameterSettings
from tests.scenarios.small import NAMES, small

FLOWS = [name for name in NAMES if find_scenario(name).domain == "flow"]
NUMBERS = ("reynolds", "friction_reynolds", "womersley", "rayleigh", "prandtl", "time_step")


def with_value(name, parameter, value):
    scenario = small(name, precision="float32")
    parameter_settings = {**scenario.parameter_settings, parameter: ParameterSettings(value)}
    original = dataclasses.replace(scenario.original or scenario, parameter_settings=parameter_settings)
    return dataclasses.replace(scenario, parameter_settings=parameter_settings, original=original)


@pytest.mark.parametrize("value", [0.0, -0.01])
@pytest.mark.parametrize("name", FLOWS)
def test_values_that_are_not_positive_are_refused(name, value):
    # Those of a file's own have the bounds that it gives them.
    numbers = ("time_step",) if small(name).simulation == "flow.domain" else NUMBERS
    found = [parameter for parameter in small(name).parameters if parameter in numbers]
    assert "time_step" in found
    for parameter in found:
        with pytest.raises(UserError, match=rf"params\.{parameter}\.default = {value:g} is not positive"):
            build(with_value(name, parameter, value))


def test_negative_viscosities_are_refused():
    with pytest.raises(UserError, match=r"params\.viscosity\.default = -0.01 is negative"):
        build(with_value("kolmogorov_turbulence", "viscosity", -0.01))


def test_a_check_that_raises_another_error_is_one_line(monkeypatch):
    @functools.wraps(system)
    def broken(**config):
        def check(params, key):
            raise ZeroDivisionError("division by zero")

        return dataclasses.replace(system(**config), check=check)

    monkeypatch.setitem(FACTORIES, "flow.domain", f"{__name__}:broken")
    monkeypatch.setattr(f"{__name__}.broken", broken, raising=False)
    with pytest.raises(UserError, match=r"flow.domain cannot run with these values \(division by zero\): .*reynolds"):
        build(small("channel_flow", precision="float32"))
