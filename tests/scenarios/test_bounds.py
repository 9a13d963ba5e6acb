"""Bounds of flow scenarios against the values that their factories accept."""

import jax
import pytest

from simkit.flow.spectral.fourier_chebyshev import REYNOLDS
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.scenarios.small import CONFIGURATION, small

pytestmark = pytest.mark.usefixtures("x64")


def check_bounds(name):
    """Give each parameter its bounds, one after the other."""
    # Bodies that fit into the shipped channel also fit on a coarse grid that resolves them.
    coarse = CONFIGURATION[name] if name == "cylinder_in_channel" else {}
    scenario = small(name, **{key: {**refined, "cell": 0.1} for key, refined in coarse.items()})
    simulation = build(scenario)
    # The largest time step depends on the other parameters, as its message says.
    shortest = {"time_step": scenario.parameters["time_step"].bounds[0]}
    assert simulation.check is not None or name == "kolmogorov_turbulence"
    if simulation.check is not None:
        for parameter, declared in scenario.parameters.items():
            for value in declared.bounds if parameter != "time_step" else declared.bounds[:1]:
                simulation.check(simulation.with_params(**shortest | {parameter: value}).params, jax.random.key(0))


def test_no_value_within_the_bounds_of_a_vortex_is_refused():
    check_bounds("taylor_green")


def test_bounds_of_the_reynolds_number_are_those_of_the_tabulated_waves():
    assert load("tollmien_schlichting").parameters["reynolds"].bounds == REYNOLDS
