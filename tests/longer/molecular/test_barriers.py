"""Barriers, saddles and rates of energies with known ones, resumed bands, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.status import Status
from tests.molecular.test_barriers import (
    LEFT,
    MIDDLE,
    RIGHT,
    WELL,
    closed_form,
    found,
    measured,
    over_muller_brown,
)


def test_double_wells_have_the_barriers_rate_and_saddle_of_their_closed_form(x64):
    batch = {name: jnp.full(3, value) for name, value in WELL.items()} | {"saddle": jnp.asarray([-0.3, 0.0, 0.2])}
    values = jax.jit(jax.vmap(measured))(batch)
    np.testing.assert_allclose(values, jax.vmap(closed_form)(batch), rtol=1e-10, atol=1e-11)


def test_saddles_of_the_muller_brown_surface_are_the_published_ones(x64):
    # Mueller and Brown, Theor. Chim. Acta 53, 75 (1979), doi:10.1007/BF00547608: places to .001, energies to .001.
    cases = {
        (LEFT, RIGHT): ([[-0.558, 1.442], [-0.822, 0.624], [0.623, 0.028]], [-146.700, -40.665, -108.167]),
        (MIDDLE, RIGHT): ([[-0.050, 0.467], [0.212, 0.293], [0.623, 0.028]], [-80.768, -72.249, -108.167]),
    }
    for ends, (places, energies) in cases.items():
        simulation = over_muller_brown(*ends)
        status, stationary, numbers = jax.jit(found(simulation))(simulation.params)
        assert status == Status.CONVERGED
        np.testing.assert_allclose(stationary[:, 0], places, atol=6e-4)
        barriers = [energies[1] - energies[0], energies[1] - energies[2]]
        np.testing.assert_allclose([numbers["barrier"], numbers["reverse_barrier"]], barriers, atol=1.1e-3)
