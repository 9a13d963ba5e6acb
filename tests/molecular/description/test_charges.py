"""Charges and mixed values of species in systems described as data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS

ATOMS = {"A": {"count": 4, "charge": "q"}, "B": {"count": 4, "charge": "-q"}}
CRYSTAL = {"lattice": "rocksalt", "repeats": [1, 1, 1], "spacing": "d"}


def composed(interactions, *, particles=ATOMS, start=CRYSTAL, **others):
    """Return a system, and where it starts."""
    settings = {"particles": particles, "interactions": interactions, "start": start, **others}
    system = composition(read(settings, SETTINGS), {"q": 1.0, "d": 1.0})
    cell = None if system.cell is None else system.cell(system.params)
    return system, system.placing.start(system.params, jax.random.key(0)), cell


def energy(interactions, **others):
    """Return the energy at the start."""
    system, x, cell = composed(interactions, **others)
    neighbors = system.interaction.prepare(x, cell, system.params)
    return system.interaction.energy(x, cell, system.params, neighbors)


def test_the_charge_of_a_species_is_refused_where_nothing_takes_it_and_needed_where_something_does():
    pair = {"potential": "buckingham", "cutoff": 0.9, "values": {"repulsion": 1.0, "rho": 0.1}}
    bare = {name: {"count": 4} for name in "AB"}
    for interactions, others, message in (
        ([pair], {}, "particles.A.charge is not taken"),
        ([{"potential": "ewald"}], {"particles": bare}, "needs a charge of each species"),
        ([{"potential": "ewald"}], {"cell": {"periodic": False, "lengths": [2, 2, 2]}}, "repeats along all axes"),
        ([{"potential": "ewald", "ending": "truncate"}], {}, "ending has no effect"),
        ([{"potential": "ewald", "one_four": 0.5}], {}, "one_four has no effect"),
        ([{**pair, "mixing": "geometric"}], {"particles": bare}, "mixing has no effect"),
    ):
        with pytest.raises(UserError, match=message):
            energy(interactions, **others)


def test_values_of_unlike_species_are_mixed_by_name(x64):
    start = {"positions": [[0, 0, 0], [1.5, 0, 0]]}
    particles = {
        "A": {"count": 1, "values": {"epsilon": 1.0, "sigma": 1.0}},
        "B": {"count": 1, "values": {"epsilon": 4.0, "sigma": 2.0}},
    }
    for rule, sigma in (("lorentz_berthelot", 1.5), ("geometric", 2**0.5)):
        for individual in (False, True):
            if individual:
                particles["A"]["values"]["sigma"] = [1.0]
            mixed = energy([{"potential": "lennard_jones", "mixing": rule}], particles=particles, start=start)
            exact = molecular.potentials.lennard_jones().energy(jnp.asarray(1.5), epsilon=2.0, sigma=sigma)
            np.testing.assert_allclose(mixed, exact, rtol=1e-14)
        particles["A"]["values"]["sigma"] = 1.0
