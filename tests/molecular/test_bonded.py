"""Topologies of molecules, and energies of bonds, angles and dihedrals at points without a derivative or a value."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import bonded, potentials, system


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


def test_atoms_on_a_line_have_a_constant_dihedral_and_nan_stays_nan():
    twist = bonded.dihedral_interaction(bonded.periodic_dihedral(1), [[0, 1, 2, 3]])
    params = {"strength": 3.0, "phase": 0.3}
    along, off = np.array([0.3, -0.7, 1.1]), np.array([0.5, 0.2, 0.9])
    for kind in (np.float32, np.float64):
        with jax.enable_x64(kind is np.float64):
            # Of the line and of atoms that coincide, the cross products are zero to within rounding only.
            for steps in ((0, 1, 2.1), (0, 1, 1), (0, 0, 0)):
                line = [*(step * along for step in steps), off]
                for x in (line, line[::-1]):
                    x = jnp.asarray(np.array(x), kind)
                    energy, slope = jax.value_and_grad(lambda x: twist.energy(x, None, params, ()))(x)
                    np.testing.assert_allclose(energy, 3 * (1 + np.cos(0.3)), rtol=1e-6)
                    assert not np.any(slope) and not np.any(twist.force(x, None, params, ()))
            assert np.isnan(twist.energy(x.at[0, 0].set(jnp.nan), None, params, ()))


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


CHAIN = np.array([[0, 0, 0], [0.15, 0.01, 0], [0.21, 0.14, 0.03], [0.34, 0.16, 0.1], [0.39, 0.29, 0.11]])


def test_maps_of_two_torsions_are_those_of_openmm_and_have_exact_derivatives(x64):
    index = np.arange(8)
    maps = {"maps": jnp.asarray(np.sin(1 + index[:, None] + 2 * index**2))[None]}
    twist = bonded.torsion_map_interaction([[0, 1, 2, 3, 4]])
    # Reference platform of OpenMM 8.6.
    assert float(twist.energy(jnp.asarray(CHAIN), None, maps, ())) == pytest.approx(-0.9006642260378595, rel=1e-12)
    ends = [[0.01164879, -0.17473184, 0.73387372], [-3.5697418, 0.88240809, 6.37740389]]
    np.testing.assert_allclose(twist.force(jnp.asarray(CHAIN), None, maps, ())[jnp.array([0, 4])], ends, atol=1e-8)

    energy = jax.jit(lambda x, maps: twist.energy(x, None, maps, ()))
    x, step = jnp.asarray(CHAIN), 1e-6
    slopes = jax.grad(energy, (0, 1))(x, maps)
    for place, slope, moved in (
        ((3, 1), slopes[0], lambda by: energy(x.at[3, 1].add(by), maps)),
        ((0, 6, 3), slopes[1]["maps"], lambda by: energy(x, {"maps": maps["maps"].at[0, 6, 3].add(by)})),
    ):
        assert float(slope[place]) == pytest.approx(float((moved(step) - moved(-step)) / (2 * step)), rel=1e-7)
    assert float(slopes[1]["maps"].sum()) == pytest.approx(1.0, rel=1e-12)


def test_a_map_of_a_molecule_as_data_is_checked_and_may_hold_formulas(x64):
    index = np.arange(8)
    energies = np.sin(1 + index[:, None] + 2 * index**2).tolist()
    spring = {"members": "chain", "potential": "harmonic", "values": {"stiffness": 1, "length": 0.15}}

    def made(**table):
        return system(
            particles={"bead": {}},
            molecules={
                "chain": {
                    "atoms": {"bead": 5},
                    "bonds": [spring],
                    "torsion_maps": [{"members": [[0, 1, 2, 3, 4]], "energies": energies} | table],
                }
            },
            start={"positions": CHAIN.tolist()},
            parameters={"corner": energies[0][0]},
        )

    bonds = 0.5 * sum((np.linalg.norm(b - a) - 0.15) ** 2 for a, b in itertools.pairwise(CHAIN))
    corner = made(energies=[["corner", *energies[0][1:]], *energies[1:]])
    value, slopes = jax.jit(
        jax.value_and_grad(lambda params: corner.diagnose(corner.init(params, jax.random.key(0)), params)["energy"])
    )(corner.params)
    assert float(value) == pytest.approx(-0.9006642260378595 + bonds, rel=1e-10)
    assert float(slopes["corner"]) != 0
    for table, match in (
        ({"energies": energies[1:]}, r"torsion_maps\[0\].energies has 7 rows of \[8\] numbers"),
        ({"members": [[0, 1, 2, 3, 5]]}, "names no atom"),
    ):
        with pytest.raises(UserError, match=match):
            made(**table)
