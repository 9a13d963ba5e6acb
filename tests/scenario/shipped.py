"""Claims about shipped scenarios and registered factories, made for a few in the quick set and for all in the other."""

import dataclasses
import json
import tomllib

import jax
import jsonschema
import pytest

from simkit.cli.main import main
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario, list_scenarios
from simkit.scenario.made_in_python import scenario_of
from simkit.scenario.registry import FACTORIES, SIMULATIONS
from simkit.scenario.scenario import ParameterSettings

NAMES = [scenario.name for scenario in list_scenarios()[0]]
FLOWS = [name for name in NAMES if find_scenario(name).domain == "flow"]
NEED_ARGUMENTS = {"flow.domain", "molecular.system", "rigid.mjcf"}
WITHOUT_ARGUMENTS = sorted(set(FACTORIES) - NEED_ARGUMENTS)
# Of those that are traced in less than a second.
FEW = ("bouncing_ball", "kolmogorov_turbulence", "lennard_jones_cluster")
FEW_FACTORIES = ("rigid.bouncing_ball", "flow.kolmogorov_turbulence")

NUMBERS = ("reynolds", "friction_reynolds", "womersley", "rayleigh", "prandtl", "time_step")


def check_that_it_builds(name):
    scenario = find_scenario(name)
    with jax.enable_x64(scenario.run.precision == "float64"):
        build(scenario)


def schema(capsys, name):
    """Return the JSON Schema that `simkit show` prints."""
    assert main(["show", name, "--schema"]) == 0
    return json.loads(capsys.readouterr().out)


def check_that_it_follows_its_schema(name, capsys):
    found = schema(capsys, name)
    jsonschema.Draft202012Validator.check_schema(found)
    jsonschema.validate(tomllib.loads(find_scenario(name).source.read_text()), found)


def check_that_a_factory_becomes_a_scenario(name):
    simulation = SIMULATIONS.resolve(name)()
    scenario, left = scenario_of(simulation, {"steps": 10})
    assert scenario.made is simulation and not left


def with_value(scenario, parameter, value):
    settings = {**scenario.parameter_settings, parameter: ParameterSettings(value)}
    original = dataclasses.replace(scenario.original or scenario, parameter_settings=settings)
    return dataclasses.replace(scenario, parameter_settings=settings, original=original)


def check_that_values_that_are_not_positive_are_refused(scenario):
    # Those of a file's own have the bounds that it gives them.
    numbers = ("time_step",) if scenario.simulation == "flow.domain" else NUMBERS
    found = [parameter for parameter in scenario.parameters if parameter in numbers]
    assert "time_step" in found
    for parameter in found:
        for value in (0.0, -0.01):
            with pytest.raises(UserError, match=rf"params\.{parameter}\.default = {value:g} is not positive"):
                build(with_value(scenario, parameter, value))
