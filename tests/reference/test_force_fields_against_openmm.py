"""Force fields written out as data against energies and forces of OpenMM, stored and computed again."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.scenario.made_in_python import load

STORED = Path(__file__).parents[1] / "data" / "alanine_dipeptide_openmm.json"


@pytest.fixture(scope="module")
def dipeptide():
    """Return energy and forces of positions (N, 3) as one compiled program."""
    with jax.enable_x64(True):
        scenario = load("alanine_dipeptide")
        described = composition(
            read(scenario.config, SETTINGS), {name: each.default for name, each in scenario.parameters.items()}
        )
        system, params = described.interaction, described.params

        def evaluated(position):
            return system.several(("energy", "force"), position, None, params, system.prepare(position, None, params))

        yield jax.jit(evaluated).lower(jnp.zeros((22, 3))).compile()


def test_energies_and_forces_of_alanine_dipeptide_are_those_of_openmm(dipeptide, x64):
    for stored in json.loads(STORED.read_text())["configurations"]:
        energy, force = dipeptide(jnp.asarray(stored["positions"]))
        np.testing.assert_allclose(energy, stored["energy"], rtol=1e-9)
        # Stored to six decimals, of components up to 1e4.
        np.testing.assert_allclose(force, stored["forces"], rtol=1e-9, atol=6e-7)
