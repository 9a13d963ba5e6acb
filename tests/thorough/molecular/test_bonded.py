"""Energies of bonds, angles and dihedrals: derivatives, stress, images, rotations, batches, straight molecules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import bonded

CELL = np.array([[9.0, 0.0, 0.0], [2.0, 8.0, 0.0], [1.0, -2.0, 9.0]])
# Interaction, its params, and dimensions of space.
CASES = {
    "harmonic bond": (
        bonded.bond_interaction(bonded.harmonic_bond(), [[0, 1], [1, 2], [0, 5]]),
        {"stiffness": 3.0, "length": 0.4},
        (2, 3),
    ),
    "fene": (
        bonded.bond_interaction(bonded.fene(), [[0, 1], [1, 2], [0, 5]], parameters=("stiffness", "extent")),
        {"stiffness": 3.0, "extent": 9.0},
        (2,),
    ),
    "angle": (
        bonded.angle_interaction(bonded.harmonic_angle(), [[0, 1, 2], [3, 0, 5]]),
        {"stiffness": 3.0, "angle": 2.0},
        (2, 3),
    ),
    "periodic dihedral": (
        bonded.dihedral_interaction(bonded.periodic_dihedral(3), [[0, 1, 2, 3], [5, 3, 2, 1]]),
        {"strength": 3.0, "phase": 0.3},
        (3,),
    ),
    "harmonic improper": (
        bonded.dihedral_interaction(
            bonded.harmonic_dihedral(), [[0, 1, 2, 3], [5, 3, 2, 1]], parameters=("stiffness", "angle")
        ),
        {"stiffness": 3.0, "angle": 0.3},
        (3,),
    ),
}


def central(function, point, width=1e-5):
    """Return the derivative of a scalar function of an array by central differences."""
    point, slopes = np.asarray(point, float), np.zeros(np.shape(point))
    for index in np.ndindex(*point.shape):
        shift = np.zeros(point.shape)
        shift[index] = width
        slopes[index] = (function(point + shift) - function(point - shift)) / (2 * width)
    return slopes


@pytest.mark.parametrize(("name", "dimension"), [(name, d) for name, case in CASES.items() for d in case[2]])
def test_force_stress_and_derivatives_by_parameters_equal_differences(name, dimension):
    interaction, params, _ = CASES[name]
    with jax.enable_x64(True):
        x, cell = np.random.default_rng(0).normal(size=(6, dimension)), CELL[:dimension, :dimension]
        energy = jax.jit(lambda x, cell, params: interaction.energy(x, cell, params, ()))
        force = jax.jit(lambda x, params: interaction.force(x, cell, params, ()))
        assert np.isfinite(energy(x, cell, params))
        expected = -central(lambda x: energy(x, cell, params), x)
        np.testing.assert_allclose(force(x, params), expected, rtol=0, atol=1e-8 * np.abs(expected).max())
        np.testing.assert_allclose(force(x, params).sum(axis=0), 0, atol=1e-12)

        def strained(strain):
            deformation = np.eye(dimension) + strain
            return energy(x @ deformation, cell @ deformation, params)

        stress = central(strained, np.zeros((dimension, dimension))) / abs(np.linalg.det(cell))
        np.testing.assert_allclose(
            interaction.stress(jnp.asarray(x), cell, params, ()), stress, rtol=0, atol=1e-8 * np.abs(stress).max()
        )

        def size(params):
            return jnp.sum(force(x, params) ** 2)

        reverse = jax.grad(size)(params)
        for key in params:
            _, forward = jax.jvp(size, (params,), ({other: float(other == key) for other in params},))
            difference = central(lambda value, key=key: size(params | {key: value}), params[key])
            np.testing.assert_allclose([reverse[key], forward], difference, rtol=1e-6)


def test_terms_are_the_same_at_other_images_and_after_a_rotation():
    with jax.enable_x64(True):
        random = np.random.default_rng(1)
        x = random.normal(size=(6, 3))
        rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]
        rotation = rotation * np.linalg.det(rotation)
        moved = x + random.integers(-2, 3, size=(6, 3)) @ CELL
        for interaction, params, _ in CASES.values():
            energy = interaction.energy(x, CELL, params, ())
            np.testing.assert_allclose(interaction.energy(moved, CELL, params, ()), energy, rtol=1e-11)
            np.testing.assert_allclose(
                interaction.energy(x @ rotation, CELL @ rotation, params, ()), energy, rtol=1e-11
            )


def test_members_of_a_batch_have_the_forces_that_they_have_alone():
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 6, 3)))
        for interaction, params, _ in CASES.values():
            together = jax.vmap(lambda each: interaction.force(each, None, params, ()))(x)  # noqa: B023
            alone = jnp.stack([interaction.force(each, None, params, ()) for each in x])
            np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)


def test_a_straight_molecule_bends_with_the_stiffness_of_its_angle():
    # Carbon dioxide: the bend of arms of length l has the force constants k / l^2 (1, -2, 1), eigenvalue 6 k / l^2.
    bend = bonded.angle_interaction(bonded.harmonic_angle(), [[0, 1, 2]])
    direction = np.array([1.0, 2.0, 3.0]) / np.sqrt(14)
    with jax.enable_x64(True):
        params = {"stiffness": 2.0, "angle": np.pi}
        for tilt in (0.0, 1e-12, 1e-9, 1e-6):
            x = jnp.asarray(np.array([-0.5, 0.0, 0.5])[:, None] * direction + [[0, 0, 0], [0, 0, 0], [tilt, 0, 0]])
            hessian = -jax.jacfwd(lambda x: bend.force(x, None, params, ()))(x).reshape(9, 9)
            eigenvalues = np.linalg.eigvalsh(hessian)
            np.testing.assert_allclose(eigenvalues[-2:], 6 * 2.0 / 0.5**2, rtol=1e-5)
            np.testing.assert_allclose(eigenvalues[:7], 0, atol=1e-4)
