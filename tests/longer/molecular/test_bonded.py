"""Topologies of molecules, and energies of bonds, angles and dihedrals at points without a derivative or a value."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import bonded, system


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
