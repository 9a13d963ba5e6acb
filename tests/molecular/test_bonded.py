"""Topologies of molecules, and energies of bonds, angles and dihedrals at points without a derivative or a value."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import bonded, potentials


def test_a_spring_of_length_zero_is_stiff_where_its_ends_meet():
    spring = bonded.bond_interaction(bonded.harmonic_bond(), [[0, 1]])
    hessian = jax.hessian(lambda x: spring.energy(x, None, {"stiffness": 2.0, "length": 0.0}, ()))(jnp.zeros((2, 3)))
    np.testing.assert_array_equal(hessian[0, :, 1], -2 * np.eye(3))


def test_dihedrals_have_their_sign_and_finite_slopes_in_cis_and_trans():
    twist = bonded.AngularPotential(lambda phi: phi, lambda: 1.0)
    angle = bonded.dihedral_interaction(twist, [[0, 1, 2, 3]], parameters=())
    with jax.enable_x64(True):
        for phi in (-2.0, -0.5, 0.0, 0.5, 3.0, np.pi):
            end = [1.0, np.cos(phi), np.sin(phi)]
            x = jnp.asarray([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], end])
            np.testing.assert_allclose(angle.energy(x, None, {}, ()), phi, atol=1e-15)
            np.testing.assert_allclose(np.linalg.norm(angle.force(x, None, {}, ())[3]), 1.0, rtol=1e-12)


def test_what_is_undefined_is_not_a_number():
    straight = jnp.asarray([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    fene = bonded.bond_interaction(bonded.fene(), [[0, 1]], parameters=("stiffness", "extent"))
    spring = bonded.bond_interaction(bonded.harmonic_bond(), [[0, 1]])
    apart = jnp.zeros((2, 3)).at[1].set(3.0)  # 5.2 apart, further than half the width
    for interaction, x, cell, params in (
        (fene, straight, None, {"stiffness": 3.0, "extent": 0.9}),
        (spring, apart, jnp.full(3, 8.0), {"stiffness": 3.0, "length": 0.4}),
    ):
        assert np.isnan(interaction.energy(x, cell, params, ()))
        assert np.isnan(interaction.force(x, cell, params, ())).any()


def test_a_pair_potential_serves_as_a_bond_with_a_value_for_each_kind():
    with jax.enable_x64(True):
        bond = bonded.bond_interaction(
            potentials.morse(), [[0, 1], [1, 2]], parameters=("epsilon", "sigma", "rho"), kinds=[1, 0]
        )
        x, params = jnp.asarray([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]]), {"epsilon": jnp.asarray([2.0, 5.0])}
        params |= {"sigma": jnp.asarray([2.0, 1.0]), "rho": 6.0}
        np.testing.assert_allclose(bond.energy(x, None, params, ()), -7.0, rtol=1e-14)


def test_pairs_at_a_number_of_bonds_are_those_of_shortest_paths():
    random = np.random.default_rng(3)
    every = list(itertools.combinations(range(9), 2))
    bonds = [every[i] for i in random.choice(len(every), 11, replace=False)]
    step, near = np.zeros((9, 9), bool), np.eye(9, dtype=bool)
    for first, second in bonds:
        step[first, second] = step[second, first] = True
    made = bonded.molecule(9, bonds)
    for length in (1, 2, 3):
        reached = np.linalg.matrix_power(step.astype(int), length) > 0
        expected = np.argwhere(np.triu(reached & ~near))
        np.testing.assert_array_equal(made.pairs_at(length), expected)
        near |= reached
    np.testing.assert_array_equal(made.copies(2).pairs_at(2), np.concatenate([made.pairs_at(2), made.pairs_at(2) + 9]))


def test_a_molecule_refuses_atoms_that_do_not_exist_and_terms_given_twice():
    for bonds, message in (
        ([[0, 3]], "the atoms are 0 to 2"),
        ([[1, 1]], "twice"),
        ([[0, 1], [1, 0]], "give each once"),
        ([[0, 1, 2]], "give 2"),
    ):
        with pytest.raises(UserError, match=message):
            bonded.molecule(3, bonds)
