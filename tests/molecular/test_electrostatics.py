"""Charges in periodic cells: constants of crystals, independence of the split, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import electrostatics, structures
from simkit.molecular.electrostatics import particle_mesh

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


def test_crystals_have_the_constants_of_madelung(x64):
    for lattice, constant in (
        (structures.rocksalt, 1.747564594633182),
        (structures.body_centered_cubic, 1.762674773070991),
        (structures.fluorite, 5.038784879848),  # of charges 2 and -1
    ):
        crystal = lattice((1, 1, 1))
        count = len(crystal.position)
        first = count // 3 if lattice is structures.fluorite else count // 2
        charge = jnp.where(jnp.arange(count) < first, (count - first) / first, -1.0)
        split, cutoff = electrostatics.split(1e-15), 0.49 * float(crystal.cell[0, 0])
        waves = electrostatics.wave_vectors(crystal.cell, split.largest / cutoff)
        coulomb = electrostatics.ewald(waves)
        params = {"charge": charge, "cutoff": cutoff, "damping": split.damping / cutoff}
        energy = coulomb.energy(crystal.position, crystal.cell, params, ((), ()))
        np.testing.assert_allclose(-energy / first, constant, rtol=1e-12)


def test_energy_force_and_stress_do_not_depend_on_the_split(x64):
    results = []
    for cutoff in (1.8, 2.2):
        coulomb, params = coulomb_energy(cutoff, excluded=EXCLUDED)
        at = jnp.asarray(PLACES), jnp.asarray(SKEWED), params, ((), (), ())
        results.append(jax.jit(lambda *at, c=coulomb: (c.energy(*at), c.force(*at), c.stress(*at)))(*at))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


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


def test_sorted_particles_spread_the_same_charges_over_a_mesh(x64):
    random = np.random.default_rng(5)
    place, charge = jnp.asarray(random.uniform(-9, 20, (300, 3))), jnp.asarray(random.normal(size=300))
    spread = [
        jax.jit(lambda *at, form=form: form(*at, (9, 6, 10), 4, (0, 1, 0)))(place, charge)
        for form in (particle_mesh._spread, particle_mesh._spread_sorted)
    ]
    np.testing.assert_allclose(*spread, atol=1e-13)
