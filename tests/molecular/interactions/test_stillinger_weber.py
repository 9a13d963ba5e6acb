"""Stillinger-Weber interaction: sums against the published formula, forces and stress against derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber

INTERACTION = stillinger_weber(capacity=40)
ENERGY, FORCE, STRESS = jax.jit(INTERACTION.energy), jax.jit(INTERACTION.force), jax.jit(INTERACTION.stress)
PREPARE = jax.jit(INTERACTION.prepare)


def silicon():
    return {name: jnp.asarray(value, dtype=float) for name, value in SILICON.items()}


def cluster(count=14, seed=0):
    """Return the positions of atoms at random in a box that gives each a handful of neighbors."""
    return jnp.asarray(np.random.default_rng(seed).uniform(0, 5.5, (count, 3)))


def neighbors_of(position, cell, params):
    neighbors = PREPARE(position, cell, params)
    assert not bool(neighbors.overflowed)
    return neighbors


def test_forces_and_torques_sum_to_zero(x64):
    params, position = silicon(), cluster()
    force = FORCE(position, None, params, neighbors_of(position, None, params))
    scale = float(jnp.abs(force).max())
    # Fourteen forces, each with a rounding per bond; arms of 5 angstrom.
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13 * scale)
    np.testing.assert_allclose(jnp.cross(position, force).sum(axis=0), 0, atol=1e-12 * scale)


def test_energy_does_not_change_under_rotation_translation_or_permutation(x64):
    params, position = silicon(), cluster()
    energy = float(ENERGY(position, None, params, neighbors_of(position, None, params)))
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    order = np.random.default_rng(6).permutation(len(position))
    for moved in (position @ rotation, position + jnp.array([3.0, -40.0, 7.0]), position[order]):
        neighbors = neighbors_of(moved, None, params)
        # Coordinates of 40 lose 7e-15, forces of up to 1e3 eV / angstrom turn it into energy.
        assert float(ENERGY(moved, None, params, neighbors)) == pytest.approx(energy, rel=1e-11)


def test_energy_scales_with_epsilon_and_sigma(x64):
    params, position = silicon(), cluster()
    energy = ENERGY(position, None, params, neighbors_of(position, None, params))
    # In meters and joules, where squares of lengths are 1e-20.
    scaled = {**params, "epsilon": params["epsilon"] * 1.6e-19, "sigma": params["sigma"] * 1e-10}
    other = ENERGY(position * 1e-10, None, scaled, neighbors_of(position * 1e-10, None, scaled))
    assert float(other / 1.6e-19) == pytest.approx(float(energy), rel=1e-12)
