"""Crystal lattices: neighbors, distances and densities."""

import jax.numpy as jnp

from simkit.molecular.structures import lattices
from tests.molecular.test_lattices import CRYSTALS


def test_particles_lie_inside_the_cell():
    for name, repeats, *_ in CRYSTALS:
        lattice = getattr(lattices, name)(repeats)
        assert bool((lattice.position >= 0).all())
        assert bool((lattice.position < jnp.diag(lattice.cell)).all())
