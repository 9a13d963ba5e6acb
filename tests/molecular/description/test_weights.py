"""Weights of learned energies as a branch of the parameters of a system described as data."""

import jax
import numpy as np
import pytest

from simkit import molecular
from simkit.errors import UserError

REACH = 2.5
WEIGHTS = np.array([0.8, 0.1, -0.9, -0.4, -0.1, 0.0])
SPLINES = {"potential": "splines", "reach": REACH, "values": {"weights": "net.pair"}}
DIMER = {"particles": {"A": {}}, "start": {"positions": [[0.0, 0.0], [1.2, 0.0]]}}


def dimer(values, parameters, potential=SPLINES, **settings):
    return molecular.system(
        **DIMER | {"interactions": [potential | {"values": values}], "parameters": parameters} | settings
    )


def test_weights_that_are_no_parameter_or_of_another_shape_are_refused():
    with pytest.raises(UserError, match=r"interactions\[0\].values.weights.*did you mean 'net.pair'"):
        dimer({"weights": "net.pare"}, {"net": {"pair": WEIGHTS}})
    with pytest.raises(UserError, match=r"splines: weights has shape \(2, 3\); give one number for each spline"):
        system = dimer({}, {"weights": WEIGHTS.reshape(2, 3)})
        jax.eval_shape(system.init, system.params, jax.random.key(0))
