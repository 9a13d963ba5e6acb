"""Hessians and normal modes: second derivatives of the energy, zero modes, and frequencies in closed form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.analysis.elasticity import normal_modes
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones, pair_potential

PARAMS = {"epsilon": 1.3, "sigma": 0.9}
BOND = 2 ** (1 / 6)


def spring(k, length):
    return pair_interaction(
        pair_potential(lambda distance: k / 2 * (distance - length) ** 2), cutoff=None, parameters=()
    )


def test_lennard_jones_diatomic_has_its_closed_form_frequency(x64):
    position = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, BOND * PARAMS["sigma"]]])
    interaction = pair_interaction(lennard_jones(), cutoff=None)
    modes = jax.jit(functools.partial(normal_modes, interaction, cell=None))(position, params=PARAMS, mass=2.0)
    # U'' = 72 epsilon / (2^(1/3) sigma^2), the reduced mass is one.
    stiffness = 72 / 2 ** (1 / 3) * PARAMS["epsilon"] / PARAMS["sigma"] ** 2
    assert float(modes.frequency[-1]) == pytest.approx(np.sqrt(stiffness), rel=1e-8)
    assert int(modes.zero_modes) == 5
