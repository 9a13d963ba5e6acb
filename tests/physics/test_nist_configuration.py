"""The reference configuration of NIST for Lennard-Jones energies and virials."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("method", ["all_pairs", "neighbor_list"])
def test_lennard_jones_reference_configuration_of_nist(x64, method):
    position = jnp.asarray(np.loadtxt(DATA / "nist_lennard_jones_configuration_4.txt"))
    cell, unit = jnp.full(3, 8.0), {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}
    interaction = pair_interaction(lennard_jones(), cutoff=3.0, method=method)
    neighbors = interaction.prepare(position, cell, unit)
    # The reference is given to the last digit shown.
    assert float(interaction.energy(position, cell, unit, neighbors)) == pytest.approx(-16.790321, abs=1e-6)
    stress = interaction.stress(position, cell, unit, neighbors)
    # NIST's virial is -sum r dU/dr.
    assert float(-jnp.trace(stress) * 8**3) == pytest.approx(-46.249197, abs=1e-6)
