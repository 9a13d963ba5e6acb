"""Relaxations whose curvature at the start, or far from the particles, must not set what is a small force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.molecular import potentials
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.description.system import composition

pytestmark = pytest.mark.usefixtures("x64")


BONDS = {
    "lennard_jones": (potentials.lennard_jones(), {"epsilon": 1.3, "sigma": 0.8}),
    "mie": (potentials.mie(9, 4), {"epsilon": 1.3, "sigma": 0.8}),
    "morse": (potentials.morse(), {"epsilon": 1.3, "sigma": 0.8, "rho": 5.0}),
    "morse_diatomic": (potentials.morse_diatomic(), {"depth": 1.3, "bond_length": 0.8, "alpha": 5.0}),
}


def test_potentials_declare_their_minimum_and_its_curvature():
    @jax.jit
    def slopes():
        found = {}
        for name, (potential, parameters) in BONDS.items():
            length, stiffness = potential.bond(**parameters)
            push, bend = jax.jvp(lambda r, u=potential, p=parameters: u.force(r, **p), (length,), (jnp.ones(()),))
            found[name] = (push / (stiffness * length), -bend / stiffness)
        return found

    for name, (push, bend) in slopes().items():
        # Of forces of 72 epsilon / sigma the round-off is left.
        assert abs(float(push)) < 1e-14 and float(bend) == pytest.approx(1, rel=1e-12), name


def test_the_scale_of_an_expression_is_that_of_the_potential_by_name():
    def scale(interaction, **values):
        settings = {
            "particles": {"A": {}},
            "interactions": [interaction | {"cutoff": "3*sigma"}],
            "start": {"lattice": "square", "repeats": [6, 6], "spacing": "1.3*sigma"},
        }
        params = {name: jnp.asarray(value) for name, value in values.items()}
        return np.array(composition(read(settings, SETTINGS), params).scale(params))

    typed = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}
    found = scale(typed, epsilon=1.0, sigma=1.0)
    np.testing.assert_allclose(found, scale({"potential": "lennard_jones"}, epsilon=1.0, sigma=1.0), rtol=1e-6)
    # Another unit of energy and length.
    np.testing.assert_allclose(scale(typed, epsilon=3.0, sigma=2.0), found * [2, 3 / 4], rtol=1e-9)
