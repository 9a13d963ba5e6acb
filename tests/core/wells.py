"""Systems in a bath whose averages are known exactly, for the tests of fluctuations."""

import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.dynamics import langevin, stochastic_cell_rescaling
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats

WELL = {"stiffness": 1.0, "quartic": 0.7, "temperature": 0.8}


def well(**values):
    """Return eight particles in an anharmonic well in a plane, and the quantity ``k <x^2>``."""
    energy = user_energy(lambda x, cell, params: jnp.sum(params["stiffness"] / 2 * x**2 + params["quartic"] / 4 * x**4))
    given = floats(**WELL | {"mass": 1.0, "friction": 1.0, "time_step": 0.1} | values)
    simulation = langevin(energy, lambda params, key: jnp.zeros((8, 2), params["mass"].dtype), params=given)
    return simulation.with_quantities(spread=lambda state, params: params["stiffness"] * jnp.mean(state.position**2))


def in_a_well(stiffness, quartic, temperature):
    """Return the exact average of that quantity."""
    x = np.linspace(-12, 12, 40_001)
    weight = np.exp(-(stiffness / 2 * x**2 + quartic / 4 * x**4) / temperature)
    return stiffness * np.sum(x**2 * weight) / np.sum(weight)


PISTON = {"pressure": 1.5, "temperature": 0.8, "stiffness": 0.2}
COUNT, CENTER = 6, 4.0


def piston():
    """Return six particles without interaction at constant pressure, their volume on a spring."""

    def energy(x, cell, params):
        return params["stiffness"] / 2 * (spaces.volume_of(cell, 2) - CENTER) ** 2 + 0.0 * jnp.sum(x)

    more = {"mass": 1.0, "friction": 1.0, "time_step": 0.02, "compressibility": 0.2, "barostat_time": 1.0}
    return langevin(
        user_energy(energy),
        lambda params, key: jnp.zeros((COUNT, 2), params["mass"].dtype),
        params=floats(**PISTON | more),
        cell=lambda params: jnp.full(2, 2.0, params["mass"].dtype),
        barostat=stochastic_cell_rescaling(),
    )


def volume(pressure, temperature, stiffness):
    """Return the exact mean of its volume."""
    v = np.linspace(1e-6, 40, 200_001)
    weight = np.exp(COUNT * np.log(v) - (pressure * v + stiffness / 2 * (v - CENTER) ** 2) / temperature)
    return np.sum(v * weight) / np.sum(weight)


def slopes(average, values):
    """Return the derivatives of an exact average by each of its values."""
    return {
        name: (average(**values | {name: value + 1e-4}) - average(**values | {name: value - 1e-4})) / 2e-4
        for name, value in values.items()
    }
