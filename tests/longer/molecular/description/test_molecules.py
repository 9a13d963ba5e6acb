"""Molecules as data: bonded energies, exclusions and 1-4 pairs, places at random, and what is refused."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.settings import read
from simkit.core.simulation import as_arrays
from simkit.molecular import system
from simkit.molecular.constraints.multipliers import settle
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from tests.molecular.description.test_molecules import ATOMS, BONDS, RIGID, SIDE, VALUES, energy_of, made
from tests.molecular.rigid import water


def angle(u, v):
    return np.arctan2(np.linalg.norm(np.cross(u, v)), u @ v)


def dihedral(p):
    first, second, third = np.diff(p, axis=0)
    normal, other = np.cross(first, second), np.cross(second, third)
    return np.arctan2(np.linalg.norm(second) * first @ other, normal @ other)


def by_hand(weight=0.5, furthest=2):
    """Return the energy: bonded terms, and Lennard-Jones pairs of all images but for those of bonded atoms."""
    v, total = VALUES, 0.0
    near = {i: {j for bond in BONDS for j in bond if i in bond and j != i} for i in range(5)}
    paths = np.full((5, 5), 99)
    for i, j, k, m in itertools.product(range(5), repeat=4):
        for length, path in ((0, (i,)), (1, (i, j)), (2, (i, j, k)), (3, (i, j, k, m))):
            if all(b in near[a] for a, b in itertools.pairwise(path)):
                paths[path[0], path[-1]] = min(length, paths[path[0], path[-1]])
    for x in (ATOMS[:5], ATOMS[5:10]):
        for index, (i, j) in enumerate(BONDS):
            k, b = (v["k"], v["b"]) if index < 3 else (v["k_tail"], 1.1)
            total += k / 2 * (np.linalg.norm(x[i] - x[j]) - b) ** 2
        for j in range(5):
            for i, k in itertools.combinations(sorted(near[j]), 2):
                total += v["bend"] / 2 * (angle(x[i] - x[j], x[k] - x[j]) - v["theta_0"]) ** 2
        for j, k in BONDS:
            for i, m in itertools.product(near[j] - {k}, near[k] - {j}):
                if i != m:
                    cosine = -np.cos(dihedral(x[[i, j, k, m]]))
                    total += v["c1"] * cosine + v["c3"] * cosine**3
        total += v["twist"] / 2 * dihedral(x[[1, 0, 2, 3]]) ** 2
    for (i, x), (j, y) in itertools.product(enumerate(ATOMS), repeat=2):
        for shift in itertools.product((-1, 0, 1), repeat=3):
            r = np.linalg.norm(x - y - SIDE * np.array(shift))
            factor = 1.0
            if i // 5 == j // 5 < 2 and not any(shift):
                bonds = paths[i % 5, j % 5]
                factor = 0.0 if bonds <= furthest else weight if bonds == 3 else 1.0
            if 0 < r < 1.8:
                total += factor / 2 * 4 * ((0.8 / r) ** 12 - (0.8 / r) ** 6)
    return total


def test_the_energy_is_that_of_terms_and_pairs_that_are_not_excluded(x64):
    expected = by_hand()
    for options in ({}, {"written": "expressions"}, {"images": [1, 2, 1]}):
        np.testing.assert_allclose(energy_of(made(**options)), expected, rtol=1e-12, err_msg=str(options))
    for exclude, one_four, arguments in (
        ("none", None, (1.0, 0)),
        ("dihedrals", None, (0.0, 3)),
        ("none", 2.0, (2.0, 0)),
    ):
        energy = energy_of(made(exclude=exclude, one_four=one_four))
        np.testing.assert_allclose(energy, by_hand(*arguments), rtol=1e-12, err_msg=f"{exclude} {one_four}")


WATER = [[0.0, 0.0, 0.0], [0.76, 0.59, 0.0], [-0.76, 0.59, 0.0]]


def solution(**settings):
    """Return rigid starts of water and flexible ones of chains in a periodic cell."""
    return system(
        particles={"O": {"diameter": 1.6}, "H": {"diameter": 0.8}, "C": {"diameter": 1.0, "count": 4}},
        molecules={
            "water": {
                "atoms": ["O", "H", "H"],
                "count": 12,
                "coordinates": WATER,
                "bonds": [
                    {"potential": "harmonic", "members": [[0, 1], [0, 2]], "values": {"stiffness": 9, "length": 1}}
                ],
            },
            "chain": {
                "atoms": {"C": 6},
                "count": 3,
                "exclude": "none",
                "bonds": [{"potential": "fene", "members": "chain", "values": {"stiffness": 30, "extent": 1.5}}],
                "angles": [{"potential": "harmonic", "values": {"stiffness": 20, "angle": 1.9}}],
                "bond_length": 0.97,
            },
        },
        interactions=[
            {"potential": "weeks_chandler_andersen", "between": ["C_C"], "values": {"epsilon": 1, "sigma": 1}}
        ],
        cell={"density": "density"},
        dimension=3,
        start={"separation": 0.9},
        relax={"force_tolerance": 1e-4},
        parameters={"density": 0.25},
        **settings,
    )


def test_molecules_are_placed_whole_and_apart_and_the_same_for_one_seed(x64):
    simulation = solution()
    start = jax.jit(lambda params, key: simulation.init(params, key).descent.position)
    params = as_arrays(simulation.params)
    first, again, other = (np.asarray(start(params, jax.random.key(seed))) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and np.abs(first - other).max() > 0.1
    side = (58 / 0.25) ** (1 / 3)
    diameter = np.array([1.6, 0.8, 0.8] * 12 + [1.0] * 22)
    for x in (first, other):
        water, chains = x[:36].reshape(12, 3, 3), x[36:54].reshape(3, 6, 3)
        for a, b in ((0, 1), (0, 2), (1, 2)):
            shape = np.linalg.norm(np.subtract(WATER[a], WATER[b]))
            np.testing.assert_allclose(np.linalg.norm(water[:, a] - water[:, b], axis=1), shape, rtol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(np.diff(chains, axis=1), axis=2), 0.97, rtol=0.03)
        ends = np.linalg.norm(chains[:, 2:] - chains[:, :-2], axis=2)
        np.testing.assert_allclose(ends, 2 * 0.97 * np.sin(1.9 / 2), rtol=0.03)
        apart = x[:, None] - x[None]
        distance = np.linalg.norm(apart - side * np.round(apart / side), axis=-1)
        molecule = np.concatenate([np.repeat(np.arange(12), 3), np.arange(12, 34)])  # beads of chains are apart, too
        is_other = molecule[:, None] != molecule[None]
        wanted = 0.9 * (diameter[:, None] + diameter[None]) / 2
        assert (distance[is_other] > wanted[is_other] - 1e-9).all()
    # In a larger cell molecules are further apart, and as large as before.
    wide = np.asarray(start(as_arrays(simulation.with_params(density=0.125).params), jax.random.key(0)))
    np.testing.assert_allclose(wide[1:3] - wide[0], first[1:3] - first[0], atol=1e-12)
    np.testing.assert_allclose(wide[3] / first[3], 2 ** (1 / 3), rtol=1e-12)


def test_planar_molecules_are_turned_in_their_plane():
    simulation = system(
        particles={"A": {}},
        molecules={"trimer": {"atoms": {"A": 3}, "count": 5, "coordinates": [[0, 0], [1, 0], [0, 0.7]]}},
        interactions=[{"potential": "soft_sphere", "values": {"epsilon": 1, "sigma": 0.9}}],
        cell={"density": 0.4},
        dimension=2,
        relax={"force_tolerance": 1e-5},
        parameters={"unused": 1.0},
    )
    x = np.asarray(simulation.init(as_arrays(simulation.params), jax.random.key(0)).descent.position).reshape(5, 3, 2)
    first, second = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    np.testing.assert_allclose(area, 0.7, rtol=1e-5)  # no mirror images
    assert np.ptp(np.arctan2(first[:, 1], first[:, 0])) > 0.5


def test_sums_over_some_species_are_those_over_all_and_triangles_as_data_are_settled(x64):
    # Of the wide cut-off a block of cells is summed.
    species = {"O": {"mass": 16.0, "diameter": 2.8}, "H": {"diameter": 0.8}}
    tables = {name: value for name, value in RIGID.items() if name != "parameters"} | {"particles": species}
    pairs = RIGID["interactions"][1] | {"cutoff": 5.0, "ending": "truncate"}
    tables["interactions"] = [pairs | {"method": "neighbor_list"}, pairs | {"method": "all_pairs", "between": ["H_H"]}]
    described = composition(read(tables, SETTINGS), RIGID["parameters"])
    whole = described.interactions.interaction(described.particles, described.images, of_particles=True)
    params, cell = described.params, described.cell(described.params)

    def results(interaction):
        position = jnp.asarray(water(8, spacing=4.2))
        at = position, cell, params, interaction.prepare(position, cell, params)
        return interaction.several(("energy", "force", "stress"), *at)

    some, every_one = jax.jit(lambda: (results(described.interaction), results(whole)))()
    for one, other in zip(some, every_one, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-9)

    settled = described.rigid_bonds(lambda params: params)
    assert [each.find for each in settled.clusters] == [settle]
    np.testing.assert_array_equal(settled.clusters[0].atoms, np.arange(24).reshape(8, 3).T)
    np.testing.assert_allclose(settled.lengths(params), [[1.0, 1.63298]])
    unequal = species | {"H": {"mass": [1.0] * 15 + [2.0]}}
    other = composition(read({**tables, "particles": unequal}, SETTINGS), RIGID["parameters"])
    assert all(each.find != settle for each in other.rigid_bonds(lambda params: params).clusters)
