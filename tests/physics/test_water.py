"""Reference energies of water: configurations of SPC/E in cells of three shapes, from NIST."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import electrostatics, interactions, potentials, spaces
from simkit.molecular.electrostatics.charges import _excluded_terms
from simkit.molecular.electrostatics.ewald import _wave_sum
from simkit.molecular.structures import parse_extended_xyz

DATA = Path(__file__).parents[1] / "data" / "water"
BOLTZMANN = 0.00831446261815324  # kJ/mol/K
COULOMB = 1389.35457644382  # kJ/mol angstrom, for elementary charges
# NIST Standard Reference Simulation Website, SPC/E water; the Fourier parts of the two skewed cells, which NIST
# sums over other wave vectors, are those over all |n_i| <= 7.
# name: alpha, Lennard-Jones, tail, real space, Fourier, intramolecular, self
CONFIGURATIONS = {
    "cubic_100": (0.28, 827.61110, -6.84875, -4646.86076, 52.132457, 23363.573742, -23652.080371),
    "triclinic": (0.285, 931.15451, -34.16569, -6046.43627, 374.177377, 95078.89447, -96297.75579),
    "monoclinic": (0.285, 208.07023, -1.35601, -1425.61699, 186.647833, 23769.72362, -24074.43895),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_part_of_the_energy_of_water_is_that_of_nist(x64, name):
    alpha, *expected = CONFIGURATIONS[name]
    (water,) = parse_extended_xyz((DATA / f"{name}.xyz").read_text(), name)
    x, cell = jnp.asarray(water.position), jnp.asarray(water.cell)
    charge = jnp.where(jnp.asarray([symbol == "H" for symbol in water.symbols]), 0.4238, -0.8476)
    bonded = 3 * np.arange(len(x) // 3)[:, None, None] + np.array([[0, 1], [0, 2], [1, 2]])
    waves = np.stack(np.meshgrid(*[np.arange(-7, 8)] * 3, indexing="ij"), -1).reshape(-1, 3)
    if name == "cubic_100":
        waves = waves[(np.sum(waves**2, axis=1) < 27) & (np.abs(waves).max(axis=1) <= 5)]
    coulomb = electrostatics.ewald(waves, excluded=bonded.reshape(-1, 2), capacity=900)
    params = {"charge": charge, "cutoff": 10.0, "damping": alpha, "coulomb_constant": COULOMB}
    total = coulomb.energy(x, cell, params, coulomb.prepare(x, cell, params))
    excluded = _excluded_terms(electrostatics.charges.of_params, bonded.reshape(-1, 2))

    oxygen, tail = x[::3], {"epsilon": 78.19743111 * BOLTZMANN, "sigma": 3.16555789, "cutoff": 10.0}
    lennard_jones = interactions.pair_interaction(
        potentials.truncated(potentials.lennard_jones()), cutoff=10.0, parameters=list(tail), method="all_pairs"
    )
    density = len(oxygen) / spaces.volume_of(cell, 3)
    parts = [
        lennard_jones.energy(oxygen, cell, tail, ()),
        len(oxygen) * potentials.tail_energy(density, **tail),
        COULOMB * _wave_sum(waves)(spaces.triclinic(cell).wrap(x) @ jnp.linalg.inv(cell), cell, charge, alpha),
        jnp.sum(excluded.energies(x, cell, params)),
        -COULOMB * alpha / np.sqrt(np.pi) * jnp.sum(charge**2),
    ]
    real = total - parts[2] - parts[3] - parts[4]
    np.testing.assert_allclose([*parts[:2], real, *parts[2:]], expected, rtol=0, atol=6e-6)
