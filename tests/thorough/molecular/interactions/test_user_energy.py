"""Interaction of a user's energy function: forces, stress, derivatives, parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.interactions.test_user_energy import gaussians, random_particles


def test_force_is_minus_the_central_difference_of_the_energy(x64):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    neighbors = interaction.refresh(interaction.prepare(position, cell, params), position, cell, params)
    along, step = jnp.asarray(np.random.default_rng(1).normal(size=position.shape)), 1e-6
    ahead, behind = (interaction.energy(position + s * along, cell, params, neighbors) for s in (step, -step))
    power = -jnp.sum(interaction.force(position, cell, params, neighbors) * along)
    # Energies of order 10: round-off 1e-14 / 1e-6 = 1e-8 beside a power of order 10.
    assert float(power) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-7)


@pytest.mark.parametrize("shape", ["edges", "vectors"])
def test_stress_is_the_central_difference_under_strain(x64, shape):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    if shape == "edges":
        cell = jnp.array([4.0, 4.2, 4.4])
    vectors = spaces.lattice_vectors(cell)
    strain, step = jnp.asarray(np.random.default_rng(2).normal(size=(3, 3))), 1e-6

    def at(amount):
        deformation = jnp.eye(3) + amount * strain
        return interaction.energy(position @ deformation, vectors @ deformation, params, ())

    slope = (at(step) - at(-step)) / (2 * step) / jnp.abs(jnp.linalg.det(vectors))
    assert float(jnp.sum(interaction.stress(position, cell, params, ()) * strain)) == pytest.approx(
        float(slope), rel=1e-6
    )


def test_free_space_has_no_stress(x64):
    interaction, (position, _, params) = user_energy(gaussians), random_particles()
    assert bool(jnp.isfinite(interaction.force(position, None, params, ())).all())
    with pytest.raises(UserError, match="no volume"):
        interaction.stress(position, None, params, ())


def test_declared_parameters_are_all_that_the_energy_takes(x64):
    _, (position, cell, params) = user_energy(gaussians), random_particles()
    declared, everything = user_energy(gaussians, parameters=["width", "height"]), user_energy(gaussians)
    beside = {**params, "mass": jnp.asarray(1.0)}
    for name in ("energy", "force", "stress"):
        found, expected = (getattr(which, name)(position, cell, beside, ()) for which in (declared, everything))
        np.testing.assert_array_equal(found, expected)


def test_energy_is_differentiated_with_respect_to_params(x64):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    slope = jax.grad(interaction.energy, argnums=2)(position, cell, params, ())["height"]
    without = interaction.energy(position, cell, {**params, "height": jnp.asarray(0.0)}, ())
    once = interaction.energy(position, cell, {**params, "height": jnp.asarray(1.0)}, ())
    assert float(slope) == pytest.approx(float(once - without), rel=1e-12)
