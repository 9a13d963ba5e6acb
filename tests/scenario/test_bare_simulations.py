"""Scenarios of simulations without a scenario file."""

import dataclasses

import simkit
from tests.core.toys import oscillator
from tests.scenario.shipped import FEW_FACTORIES, check_that_a_factory_becomes_a_scenario
from tests.tables import every


@every("name", FEW_FACTORIES)
def test_the_result_of_a_factory_becomes_a_scenario(name):
    check_that_a_factory_becomes_a_scenario(name)


def test_a_bare_simulation_runs_and_keeps_its_units():
    simulation = dataclasses.replace(
        oscillator(2),
        observe=lambda state, params: {"angle": state.position},
        dimensions={"angle": ("oscillator",)},
        quantities={"energy": simkit.Quantity("J", "of all"), "angle": simkit.Quantity("rad", "of each")},
    )
    run = simkit.run(simulation, steps=4, every=2, frequency=2.0)
    assert run["energy"].attrs["units"] == "J" and run["angle"].dims == ("time", "oscillator")
