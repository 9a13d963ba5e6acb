"""Scenarios of simulations without a scenario file, for every registered factory."""

import pytest

import simkit
from simkit.scenario.made_in_python import scenario_of
from simkit.scenario.registry import FACTORIES, SIMULATIONS
from tests.flow.plane_channel import plane_channel

NEED_ARGUMENTS = {"flow.domain", "molecular.system", "rigid.mjcf"}


@pytest.mark.parametrize("name", sorted(set(FACTORIES) - NEED_ARGUMENTS))
def test_the_result_of_a_factory_becomes_a_scenario(name):
    simulation = SIMULATIONS.resolve(name)()
    scenario, left = scenario_of(simulation, {"steps": 10})
    assert scenario.made is simulation and not left


def test_a_bare_simulation_runs_and_keeps_its_units():
    run = simkit.run(plane_channel((6, 4)), steps=4, every=2, perturbation=0.1)
    assert run["bulk_velocity"].attrs["units"] == "U" and run["speed"].dims == ("time", "y", "x")
