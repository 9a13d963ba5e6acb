"""Relaxations whose curvature at the start, or far from the particles, must not set what is a small force."""

import jax
import jax.numpy as jnp
import pytest

from simkit.molecular import potentials

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
