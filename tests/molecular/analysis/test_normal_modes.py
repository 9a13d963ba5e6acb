"""Hessians and normal modes: second derivatives of the energy, zero modes, and frequencies in closed form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.normal_modes import normal_modes
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.user_energy import user_energy
from simkit.molecular.potentials import energy_shifted, lennard_jones, pair_potential
from tests.every import every

PARAMS = {"epsilon": 1.3, "sigma": 0.9}
BOND = 2 ** (1 / 6)


def scattered(dimension, count=10):
    """Return positions of particles that are not at rest, none closer than 0.7."""
    side = int(np.ceil(count ** (1 / dimension)))
    sites = np.stack(np.meshgrid(*[np.arange(side)] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)[:count]
    return jnp.asarray(sites + np.random.default_rng(0).uniform(-0.15, 0.15, sites.shape))


def truncated(method):
    return pair_interaction(energy_shifted(lennard_jones()), cutoff=2.4, parameters=tables, method=method)


def tables(params):
    return {**params, "cutoff": jnp.asarray(2.4)}


def spring(k, length):
    return pair_interaction(
        pair_potential(lambda distance: k / 2 * (distance - length) ** 2), cutoff=None, parameters=()
    )


@every(("dimension", "rigid"), [(2, 3), (3, 5)])
def test_diatomic_vibrates_at_the_root_of_stiffness_over_reduced_mass(x64, dimension, rigid):
    k, mass = 7.0, jnp.array([1.0, 15.0])
    axis = jnp.array([1.0, 2.0, -0.5])[:dimension]
    position = jnp.stack([jnp.zeros(dimension), 1.2 * axis / jnp.linalg.norm(axis)])
    modes = normal_modes(spring(k, 1.2), position, None, {}, mass=mass)
    # Two translations and one rotation; three and two in space, where one about the axis moves nothing.
    assert int(modes.zero_modes) == rigid
    reduced = float(mass[0] * mass[1] / mass.sum())
    assert float(modes.frequency[-1]) == pytest.approx(np.sqrt(k / reduced), rel=1e-8)
    # The light particle moves more; the center of mass does not.
    np.testing.assert_allclose(mass @ modes.vector[-1], 0, atol=1e-12)


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
    modes = normal_modes(user_energy(energy), position, jnp.eye(2) * count, {"k": jnp.asarray(k)}, mass=mass)
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


@every("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_of_frequencies_equal_central_differences(x64, inner):
    position, cell = scattered(2, 4), jnp.full(2, 5.0)

    def frequencies(mass):
        modes = normal_modes(truncated("all_pairs"), position, cell, PARAMS, mass=mass)
        return jnp.where(modes.is_zero, 0, modes.frequency)

    mass, h = jnp.array([1.0, 1.7, 2.9, 0.8]), 1e-5
    derive = jax.jit(inner(frequencies))
    differences = [(derive(mass + h * e) - derive(mass - h * e)) / (2 * h) for e in jnp.eye(4)]
    found = jax.jit(jax.jacfwd(inner(frequencies)))(mass)
    assert np.abs(found).max() > 1
    # Truncation of h^2 and cancellation of 1e-16 / h in derivatives of up to 100.
    np.testing.assert_allclose(found, np.stack(differences, axis=-1), rtol=1e-7, atol=1e-7)


def test_invalid_masses_and_counts_are_refused(x64):
    position = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    with pytest.raises(UserError, match="one number or one for each of 2"):
        normal_modes(spring(1.0, 1.0), position, None, {}, mass=jnp.ones(3))
    with pytest.raises(UserError, match="count = 5; the system has 4 modes"):
        normal_modes(spring(1.0, 1.0), position, None, {}).lowest(5)
