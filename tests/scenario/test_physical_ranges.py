"""Refusal of unphysical parameter values that the bounds of a file allow."""

import dataclasses
import functools

import pytest

from simkit.errors import UserError
from simkit.flow.description.system import system
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.registry import FACTORIES
from tests.scenario.shipped import check_that_values_that_are_not_positive_are_refused, with_value
from tests.tables import every


@every("name", ("couette_poiseuille", "kolmogorov_turbulence"))
def test_values_that_are_not_positive_are_refused(name):
    check_that_values_that_are_not_positive_are_refused(find_scenario(name))


def test_negative_viscosities_are_refused():
    with pytest.raises(UserError, match=r"params\.viscosity\.default = -0.01 is negative"):
        build(with_value(find_scenario("kolmogorov_turbulence"), "viscosity", -0.01))


def test_a_check_that_raises_another_error_is_one_line(monkeypatch):
    @functools.wraps(system)
    def broken(**config):
        def check(params, key):
            raise ZeroDivisionError("division by zero")

        return dataclasses.replace(system(**config), check=check)

    monkeypatch.setitem(FACTORIES, "flow.domain", f"{__name__}:broken")
    monkeypatch.setattr(f"{__name__}.broken", broken, raising=False)
    with pytest.raises(UserError, match=r"flow.domain cannot run with these values \(division by zero\): .*reynolds"):
        build(find_scenario("channel_flow"))
