"""Embedded-atom energies: the published double sum, its derivatives, lists, and expressions of molecular.system."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from tests.molecular.test_embedded_atom import (
    COUNT,
    CUTOFF,
    PARAMS,
    SPECIES,
    fade,
    measured,  # noqa: F401
)


def published_energy(position, cell, params):
    """Return the energy atom by atom."""
    vectors = np.asarray(spaces.displacement(spaces.of_cell(cell, 3), position[:, None], position[None]))
    energy = 0.0
    for i in range(COUNT):
        rho = 0.0
        for j in range(COUNT):
            r = np.linalg.norm(vectors[i, j])
            if i != j and r < CUTOFF:
                a, b = SPECIES[i], SPECIES[j]
                rho += params["amplitude"][a, b] * np.exp(-2 * params["decay"] * (r - 1)) * fade(r)
                energy += params["repulsion"][a, b] * np.exp(-3 * params["decay"] * (r - 1)) * fade(r)
        energy -= params["depth"][SPECIES[i]] * np.sqrt(rho)
    return energy


def test_energy_is_the_published_sum_and_forces_and_stress_its_derivatives(x64, measured):
    computed, position, cell, params = measured
    found = computed(position, params)
    (energy, (gradient, strained, _)), force, stress = found["neighbor_list"]
    # Some hundred roundings.
    assert float(energy) == pytest.approx(published_energy(position, cell, PARAMS), rel=1e-12)
    size = float(jnp.abs(force).max())
    assert size > 0.1
    np.testing.assert_allclose(force, -gradient, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-12 * size)
    np.testing.assert_allclose(stress, strained / jnp.linalg.det(cell), rtol=0, atol=1e-12 * size)
    np.testing.assert_array_equal(stress, stress.T)
    for one, other in zip(found["all_pairs"], ((energy,), force, stress), strict=True):
        np.testing.assert_allclose(*map(jnp.asarray, (one, other)), rtol=0, atol=1e-12 * max(size, abs(energy)))
