"""Charges in periodic cells: constants of crystals, independence of the split, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import electrostatics

SKEWED = np.array([[5.0, 0.0, 0.0], [1.2, 4.6, 0.0], [-0.8, 0.7, 5.3]])
# The last two are a molecule across a face of the cell.
PLACES = np.random.default_rng(4).uniform(0, 1, (7, 3)) @ SKEWED
PLACES[6] = PLACES[5] + [0.6, 0.5, -0.3] + SKEWED[1]
CHARGES = np.array([1.0, -0.7, 0.4, -1.2, 0.9, 0.8, -0.5])
EXCLUDED = np.array([[5, 6], [1, 2]])


def coulomb_energy(cutoff, tolerance=1e-9, **options):
    """Return the interaction for a cut-off, and its params."""
    split = electrostatics.split(tolerance)
    waves = electrostatics.wave_vectors(1.1 * SKEWED, split.largest / cutoff)
    params = {"charge": jnp.asarray(CHARGES), "cutoff": cutoff, "damping": split.damping / cutoff}
    return electrostatics.ewald(waves, **options), params


def test_without_three_periods_the_energy_is_not_a_number():
    coulomb, params = coulomb_energy(2.2, 1e-3)
    for cell in (jnp.asarray([5.0, 5.0, jnp.inf]), jnp.full(3, 4.3)):  # a slab, and a cell that the cut-off exceeds
        assert np.isnan(jax.jit(coulomb.energy)(jnp.asarray(PLACES, float), cell, params, ((), ())))


@pytest.fixture(scope="module")
def reference():
    """Return what `by_ewald` does, in a skewed cell."""
    return by_ewald(1.6 * SKEWED)


def by_ewald(cell):
    """Return a system of 40 random charges, and its energy, forces and stress by Ewald summation."""
    random = np.random.default_rng(0)
    x, charge = random.uniform(0, 1, (40, 3)) @ cell, random.normal(size=40)
    split = electrostatics.split(1e-11)
    params = {"charge": charge, "cutoff": 3.2, "damping": split.damping / 3.2}
    with jax.enable_x64(True):
        coulomb = electrostatics.ewald(electrostatics.wave_vectors(cell, split.largest / 3.2))
        at = jax.tree.map(jnp.asarray, (x, cell, params, ((), ())))
        return at, results(coulomb, at)


def results(coulomb, at):
    """Return energy, forces and stress."""
    return jax.jit(lambda *at: (coulomb.energy(*at), coulomb.force(*at), coulomb.stress(*at)))(*at)


def relative_error(some, exact):
    """Return the root mean square error of forces over their root mean square."""
    return float(jnp.sqrt(jnp.sum((some - exact) ** 2) / jnp.sum(exact**2)))
