"""Thermostats and barostats: conserved energies, schedules, frozen particles, derivatives, resumed runs, batches."""

import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.molecular.dynamics import bussi, langevin, nose_hoover, stochastic_cell_rescaling
from simkit.molecular.interactions.user_energy import user_energy
from tests.molecular.dynamics.baths import VALUES, liquid
from tests.molecular.dynamics.moving import floats

ISOTROPIC = stochastic_cell_rescaling()


def test_invalid_schedules_are_refused_in_one_line():
    asks = {"temperature": lambda params, time: params["heat"] * time}
    with pytest.raises(UserError, match="the schedule temperature= reads 'heat'; params have barostat_time, "):
        liquid(langevin, options=asks)
    with pytest.raises(
        UserError, match=r"the schedule temperature= returns \(2,\); return one number of \(params, time\)"
    ):
        liquid(nose_hoover, options={"temperature": lambda params, time: jnp.ones(2)})
    with pytest.raises(UserError, match="params lack 'compressibility'"):
        some = {name: value for name, value in VALUES.items() if name != "compressibility"}
        bussi(
            user_energy(lambda x, cell, params: jnp.sum(x**2)),
            lambda params, key: jnp.zeros((2, 2)),
            params=floats(**some),
            cell=lambda params: jnp.ones(2),
            barostat=ISOTROPIC,
        )
    with pytest.raises(UserError, match="length = 0 and substeps = 1; choose at least 1"):
        liquid(nose_hoover, options={"length": 0})
