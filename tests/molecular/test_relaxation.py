"""Relaxation of crystals, cells and clusters, and its implicit derivative."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import minimizers
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones
from simkit.molecular.relaxation import relaxation
from simkit.molecular.relaxation.equilibrium import rigid_motions


def test_a_linear_molecule_has_one_rotation_less(x64):
    position = jnp.arange(4.0)[:, None] * jnp.array([1.0, 2.0, -1.0])
    norms = np.sort(jnp.sum(rigid_motions(position, rotations=True, length=1.0).displacement ** 2, axis=(1, 2)))
    assert norms[0] == 0.0
    # Normalized to a rounding each.
    np.testing.assert_allclose(norms[1:], 1, atol=1e-14)


def test_impossible_requests_are_refused():
    params = {"sigma": jnp.asarray(1.0)}
    interaction = pair_interaction(lennard_jones(), cutoff=None, method="all_pairs")

    def make(**changes):
        return relaxation(interaction, None, params=params, scale=None, **changes)

    with pytest.raises(UserError, match="force_tolerance = 0 is not above 0"):
        make(force_tolerance=0.0)
    with pytest.raises(UserError, match="needs a cell"):
        make(relax_cell=True)
    with pytest.raises(UserError, match="parameter pressure"):
        make(relax_cell=True, cell=lambda params: jnp.ones(2))
    with pytest.raises(UserError, match="unknown minimizer"):
        make(minimizer="newton")
    assert minimizers.by_name("fire").patience > 0
