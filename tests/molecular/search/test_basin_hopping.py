"""Basin hopping: the published global minima from random starts, and the rules of the walk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.systems.basin_hopping import accepts, search_report
from tests.tables import every


@every("temperature", [0.5, 2.0])
def test_metropolis_accepts_with_the_boltzmann_probability(x64, temperature):
    chance = (jnp.arange(10_000) + 0.5) / 10_000
    for climb in (-1.0, 0.0, 0.3, 1.0):
        accepted = jax.vmap(accepts, in_axes=(None, None, 0))(jnp.asarray(climb), jnp.asarray(temperature), chance)
        # Counted over evenly spaced chances: to one in 10,000.
        assert float(accepted.mean()) == pytest.approx(min(1.0, np.exp(-climb / temperature)), abs=1.1e-4)


def test_at_zero_temperature_no_increase_is_accepted(x64):
    chance = jnp.linspace(0, 1, 101)[:-1]
    zero = jnp.asarray(0.0)
    assert bool(accepts(jnp.asarray(0.0), zero, chance).all()) and bool(accepts(jnp.asarray(-1.0), zero, chance).all())
    assert not bool(accepts(jnp.asarray(1e-12), zero, chance).any())


def test_report_counts_the_cost_of_walkers_without_success():
    energy = np.array([[0.0, 0.0, 0.0], [-1.0, -0.5, 0.0], [-1.0, -1.0, -0.9]])
    cost = np.array([[1, 1, 1], [11, 11, 11], [21, 21, 31]])
    found = search_report(energy, cost, lowest=-1.0, tolerance=0.01)
    assert found == (2 / 3, (11 + 21 + 31) / 2)
    assert search_report(energy, cost, lowest=-2.0, tolerance=0.01) == (0.0, np.inf)
