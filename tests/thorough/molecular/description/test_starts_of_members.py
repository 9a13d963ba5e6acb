"""Random places are drawn for the values in the file, so that a member of a sweep is the run with its values."""

import jax
import numpy as np
import pytest

from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.scenarios.small import small

KEY = 1


@pytest.mark.parametrize("change", [{"sigma": 1.0004}, {"density": 1.16}, {"epsilon": 1.01}])
def test_a_run_with_another_value_starts_as_a_member_with_that_value(x64, change):
    scenario = small("binary_glass")
    member, alone = build(scenario).with_params(**change), build(load(scenario, change))
    for name, value in alone.params.items():
        np.testing.assert_array_equal(member.params[name], value)
    starts = [jax.jit(made.init)(made.params, jax.random.key(KEY)) for made in (member, alone)]
    observed = [made.observe(start, made.params) for made, start in zip((member, alone), starts, strict=True)]
    for name, array in observed[0].items():
        np.testing.assert_array_equal(array, observed[1][name], err_msg=name)
