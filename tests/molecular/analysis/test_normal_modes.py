"""Hessians and normal modes: second derivatives of the energy, zero modes, and frequencies in closed form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.elasticity import normal_modes
from simkit.molecular.interactions.interaction import user_energy
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


def test_ring_of_springs_in_a_cell_has_the_dispersion_of_a_chain(x64):
    count, k, mass = 8, 3.0, 0.5

    # Springs along x between neighbors; nothing pushes along y but a spring to the axis, twice as stiff.
    def energy(position, cell, params):
        stretch = jnp.roll(position[:, 0], -1) - position[:, 0] - 1
        stretch = stretch - cell[0, 0] * jnp.round(stretch / cell[0, 0])
        return params["k"] * (jnp.sum(stretch**2) / 2 + jnp.sum(position[:, 1] ** 2))

    position = jnp.stack([jnp.arange(count, dtype=float), jnp.zeros(count)], axis=-1)
    params = {"k": jnp.asarray(k)}
    modes = jax.jit(lambda x: normal_modes(user_energy(energy), x, jnp.eye(2) * count, params, mass=mass))(position)
    along = 2 * np.sqrt(k / mass) * np.abs(np.sin(np.pi * np.arange(count) / count))
    expected = np.sort(np.concatenate([along, np.full(count, np.sqrt(2 * k / mass))]))
    # The root of the one zero, 1e-15, is 3e-8.
    np.testing.assert_allclose(modes.frequency, expected, rtol=1e-8, atol=1e-6)
    assert int(modes.zero_modes) == 1
    np.testing.assert_allclose(modes.lowest(3).frequency, expected[1:4], rtol=1e-8)


def test_frequency_is_differentiable(x64):
    interaction = pair_interaction(lennard_jones(), cutoff=None)

    def frequency(epsilon):
        params = {"epsilon": epsilon, "sigma": 1.0}
        position = jnp.array([[0.0, 0.0], [BOND, 0.0]])
        return normal_modes(interaction, position, None, params).frequency[-1]

    value, slope = jax.jit(jax.value_and_grad(frequency))(2.0)
    # Proportional to the square root of epsilon.
    assert float(slope) == pytest.approx(float(value) / 4, rel=1e-12)


def test_invalid_masses_and_counts_are_refused(x64):
    position = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    with pytest.raises(UserError, match="one number or one for each of 2"):
        normal_modes(spring(1.0, 1.0), position, None, {}, mass=jnp.ones(3))
    with pytest.raises(UserError, match="count = 5; the system has 4 modes"):
        normal_modes(spring(1.0, 1.0), position, None, {}).lowest(5)
