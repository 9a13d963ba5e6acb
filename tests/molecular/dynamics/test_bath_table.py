"""Every method with every barostat, cell, dimension, schedule and frozen particles: conserved quantities or refusal."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.dynamics import (
    bussi,
    langevin,
    nose_hoover,
    splitting,
    stochastic_cell_rescaling,
    velocity_verlet,
)
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.baths import THERMOSTATS, VALUES, liquid
from tests.molecular.dynamics.moving import floats
from tests.tables import every

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
    with pytest.raises(UserError, match="chain = 0 is not an integer of 1 to 16"):
        liquid(nose_hoover, options={"chain": 0})


METHODS = {"velocity_verlet": velocity_verlet} | THERMOSTATS
BAROSTATS = {
    "none": None,
    "isotropic": stochastic_cell_rescaling(),
    "anisotropic": stochastic_cell_rescaling(isotropic=False),
}
KINDS, DIMENSIONS = ("free", "sides", "triclinic"), (2, 3)


def heated(params, time):
    return params["temperature"] * (1 + time)


def pressed(params, time):
    return params["pressure"] * (1 + time)


def made(method, barostat, kind, dimension, schedule, frozen):
    """Return a liquid of 8 or 9 particles moved as the arguments say."""
    options = {}
    if barostat != "none":
        options["barostat"] = BAROSTATS[barostat]
        if schedule:
            isotropic = barostat == "isotropic"
            options["barostat"] = stochastic_cell_rescaling(pressure=pressed, isotropic=isotropic)
    if schedule:
        options["temperature"] = heated
    per_side = 3 if dimension == 2 else 2
    if frozen:
        options["frozen"] = np.arange(per_side**dimension) < 2
    density = 0.45 if dimension == 2 else 0.09
    return liquid(METHODS[method], per_side=per_side, dimension=dimension, density=density, kind=kind, options=options)


# Dimensions, schedules and frozen particles take turns, so that every pair of properties is met.
ROWS = [
    (method, barostat, kind, 2 + (a + b + c) % 2, method != "velocity_verlet" and (a + c) % 2 == 0)
    for a, method in enumerate(METHODS)
    for b, barostat in enumerate(BAROSTATS)
    for c, kind in enumerate(KINDS)
    if barostat == "none" or (kind != "free" and method != "velocity_verlet")
]


@every("method", THERMOSTATS)
@every("barostat", ["isotropic", "anisotropic"])
def test_impossible_combinations_are_refused(method, barostat):
    for dimension, schedule in itertools.product(DIMENSIONS, (False, True)):
        with pytest.raises(UserError, match="a barostat moves all particles with the cell; give a cell"):
            made(method, barostat, "free", dimension, schedule, frozen=False)
        for kind in ("sides", "triclinic"):
            with pytest.raises(UserError, match="leave out barostat and frozen"):
                made(method, barostat, kind, dimension, schedule, frozen=True)


def test_velocity_verlet_takes_neither_barostat_nor_schedule():
    with pytest.raises(UserError, match="a barostat needs a thermostat, which velocity_verlet lacks"):
        splitting(None, None, stochastic_cell_rescaling())
    for name, given in (("barostat", stochastic_cell_rescaling()), ("temperature", heated)):
        with pytest.raises(UserError, match=f"velocity_verlet has no bath and takes no {name}=; take langevin"):
            liquid(velocity_verlet, options={name: given})
