"""Charges in periodic cells: constants of crystals, independence of the split, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import electrostatics, structures
from simkit.molecular.electrostatics import particle_mesh
from tests.molecular.test_electrostatics import EXCLUDED, PLACES, SKEWED, coulomb_energy


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


def test_sorted_particles_spread_the_same_charges_over_a_mesh(x64):
    random = np.random.default_rng(5)
    place, charge = jnp.asarray(random.uniform(-9, 20, (300, 3))), jnp.asarray(random.normal(size=300))
    spread = [
        jax.jit(lambda *at, form=form: form(*at, (9, 6, 10), 4, (0, 1, 0)))(place, charge)
        for form in (particle_mesh._spread, particle_mesh._spread_sorted)
    ]
    np.testing.assert_allclose(*spread, atol=1e-13)
