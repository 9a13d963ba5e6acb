"""Weights of learned energies as a branch of the parameters of a system described as data."""

import sys

import numpy as np
import pytest

import simkit
from tests.molecular.description.test_weights import dimer

# A network of another package: its energy is that of one neuron for each of two radii.
NETWORK = """
import jax.numpy as jnp
from simkit.core.parts import part
from simkit.core.settings import branch
from simkit.molecular.interactions import ManyBody, learned_energy

def energy(weights, position, species, cell, near):
    r = jnp.where(near.is_pair, near.distance, 2.5)
    window = jnp.where(near.is_pair, (1 - (r / 2.5) ** 2) ** 3, 0)
    seen = (window[..., None] * jnp.stack([1 / r**6, jnp.exp(-r)], -1)).sum(axis=1)
    return (jnp.tanh(seen * weights["in"]) * weights["out"]["each"]).sum(axis=1)

@part(values={"weights": branch("of the network")})
def network():
    return ManyBody(learned_energy(energy, cutoff=2.5), reach=lambda weights: jnp.asarray(2.5), bond=None)
"""


def test_a_network_of_another_package_takes_its_weights_of_the_parameters(x64, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "networks.py").write_text(NETWORK)
    info = tmp_path / "networks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: networks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[simkit.potentials]\nnetwork = networks:network\n")
    weights = {"in": np.array([1.0, -0.5]), "out": {"each": np.array([1.0, 2.0])}}
    system = dimer(
        {},
        {"weights": weights, "k": 1.0},
        {"potential": "network"},
        task="dynamics",
        dynamics={"method": "velocity_verlet", "time_step": 1e-9},
    )
    energy, slope = simkit.value_and_grad(system, "weights.out", objective="potential_energy", steps=1)
    # The energy is linear in the last layer.
    assert energy == pytest.approx(float(weights["out"]["each"] @ slope["weights.out.each"]), rel=1e-12)
    sys.modules.pop("networks", None)
