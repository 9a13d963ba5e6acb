"""Relaxation of structures from text: known energies, and refusal of mistakes before a run."""

import ase
import ase.build
import ase.cluster
import jax
import numpy as np
import pytest

from simkit.core.buffers import enlarged, sized_like
from simkit.core.converge import converge
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.molecular import relaxed_structure
from simkit.molecular.structures.extended_xyz import write_extended_xyz
from simkit.molecular.structures.structures import from_atoms
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import with_values

pytestmark = pytest.mark.usefixtures("x64")

# The bond of Stillinger-Weber silicon is 2^(1/6) sigma long; the cubic cell is 4 / sqrt(3) bonds wide.
SILICON_CELL = 4 / np.sqrt(3) * 2 ** (1 / 6) * 2.0951


def text_of(*atoms):
    return write_extended_xyz([from_atoms(one) for one in atoms])


def diagnosed(simulation, *names, **values):
    """Return some diagnostics of the start; no others are compiled."""
    params = simulation.with_params(**values).params

    def start(params):
        found = simulation.diagnose(simulation.init(params, jax.random.key(0)), params)
        return {name: found[name] for name in names}

    return {name: float(value) for name, value in jax.jit(start)(params).items()}


def crystal(repeats=2):
    return ase.build.bulk("Si", "diamond", a=SILICON_CELL, cubic=True) * ((repeats,) * 3)


def test_an_unrelaxed_vacancy_in_silicon_has_the_energy_of_two_bonds():
    # It breaks four bonds of epsilon, and the atom makes two elsewhere; the others feel no force and stay. As published
    # with epsilon = 2.315 eV: 4.63 eV (Balamane et al. 1992). The potential's constants, given to ten digits, and its
    # reach make a bond's energy true to 1e-8, and the sum of 124 bonds minus 126 to 1e-6.
    simulation = relaxed_structure(structure=text_of(crystal(), crystal()[1:]), potential="silicon")
    wanted = ("formation_energy", "max_force")
    found = diagnosed(simulation, *wanted, epsilon=2.315, reference_energy=-4.63)
    assert found["formation_energy"] == pytest.approx(4.63, rel=1e-6)
    assert found["max_force"] < 1e-6


def neon_argon():
    """Return five atoms in free space, parameters by pairs, and their energy summed pair by pair."""
    rng = np.random.default_rng(3)
    atoms = ase.Atoms("ArNeArNeNe", positions=rng.uniform(0, 4, (5, 3)) + np.arange(5)[:, None])
    epsilon, sigma = np.array([[1.0, 0.7], [0.7, 0.4]]), np.array([[3.4, 3.0], [3.0, 2.8]])
    kind, energy = [0, 1, 0, 1, 1], 0.0
    for i in range(5):
        for j in range(i):
            attraction = (sigma[kind[i], kind[j]] / np.linalg.norm(atoms.positions[i] - atoms.positions[j])) ** 6
            energy += 4 * epsilon[kind[i], kind[j]] * (attraction**2 - attraction)
    return atoms, epsilon, sigma, energy


def test_species_have_tables_of_parameters():
    atoms, epsilon, sigma, energy = neon_argon()
    simulation = relaxed_structure(structure=text_of(atoms), species=["Ar", "Ne"])
    assert simulation.params["epsilon"].shape == simulation.params["sigma"].shape == (2, 2)
    reference = np.array([-0.5, 0.25])
    both = ("energy", "formation_energy")
    found = diagnosed(simulation, *both, epsilon=epsilon, sigma=sigma, reference_energy=reference)
    assert found["energy"] == pytest.approx(energy, rel=1e-12)
    assert found["formation_energy"] == pytest.approx(energy + 2 * 0.5 - 3 * 0.25, rel=1e-12)
    # Both halves of a table count alike.
    skewed = diagnosed(simulation, "energy", epsilon=epsilon + np.array([[0, 0.1], [-0.1, 0]]), sigma=sigma)
    assert skewed["energy"] == pytest.approx(energy, rel=1e-12)
    named = relaxed_structure(structure=text_of(atoms), species=["Ne", "Ar"])
    turned = diagnosed(named, "energy", epsilon=epsilon[::-1, ::-1], sigma=sigma[::-1, ::-1])
    assert turned["energy"] == pytest.approx(energy, rel=1e-12)


def test_thirteen_atoms_reach_the_global_minimum():
    atoms = ase.cluster.Icosahedron("Ar", 2, 1.0)
    distance = atoms.get_all_distances()
    atoms.positions *= 1.2 * 2 ** (1 / 6) / distance[0][distance[0] > 0].min()
    distance = atoms.get_all_distances()[np.triu_indices(13, 1)]
    # As it shrinks by s its energy is 4 (A / s^12 - B / s^6), lowest at s^6 = 2 A / B.
    a, b = (distance**-12).sum(), (distance**-6).sum()
    shrunk, radius = (2 * a / b) ** (1 / 6), np.linalg.norm(atoms.positions - atoms.positions.mean(axis=0), axis=1)

    simulation = relaxed_structure(structure=text_of(atoms), species=["Ar"])
    params = simulation.with_params(epsilon=1.0, sigma=1.0).params
    end = jax.jit(lambda key: converge(simulation, 500)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(end.status) == Status.CONVERGED
    found = jax.jit(simulation.diagnose)(end.state, params)
    assert float(found["energy"]) == pytest.approx(-(b**2) / a, rel=1e-12)
    assert float(found["energy"]) == pytest.approx(-44.326801, abs=1e-6)  # Cambridge Cluster Database
    frame = jax.jit(simulation.observe)(end.state, params)
    np.testing.assert_array_equal(frame["atomic_number"], np.full(13, 18))
    # Forces below 1e-10 leave displacements of their size over the stiffness, 57.
    np.testing.assert_allclose(frame["displacement"], (1 - shrunk) * radius, atol=1e-11)
    np.testing.assert_allclose(frame["diameter"], np.full(13, 2 ** (1 / 6)), rtol=1e-15)


def test_two_atoms_have_the_energy_of_their_pair():
    pair = text_of(ase.Atoms("X2", positions=[[0, 0, 0], [0.8, 0, 0]]))
    soft = diagnosed(relaxed_structure(structure=pair, potential="soft_sphere", exponent=2.5), "energy", epsilon=3.0)
    assert soft["energy"] == pytest.approx(3 / 2.5 * 0.2**2.5, rel=1e-12)
    x = np.exp(5 * (1 - 0.8))
    morse = diagnosed(relaxed_structure(structure=pair, potential="morse"), "energy", rho=5.0)
    assert morse["energy"] == pytest.approx(x * (x - 2), rel=1e-12)


def test_the_potential_is_switched_off_at_the_cutoff():
    boxed = ase.Atoms("X2", positions=[[0, 0, 0], [9.0, 0, 0]], cell=[10, 10, 10], pbc=True)
    simulation = relaxed_structure(structure=text_of(boxed), cutoff=1.25, switch_on=0.6)
    # The two are 1 apart through the face of the cell, halfway between 0.75 and 1.25, where the switch is one half.
    x = 1.1**6
    assert diagnosed(simulation, "energy", sigma=1.1)["energy"] == pytest.approx(0.5 * 4 * (x * x - x), rel=1e-12)


def test_a_cell_relaxes_to_the_external_pressure():
    atoms = ase.build.bulk("X", "fcc", a=1.6, cubic=True) * (2, 2, 2)
    simulation = relaxed_structure(structure=text_of(atoms), cutoff=1.5, relax_cell=True, force_tolerance=1e-9)
    params = simulation.with_params(pressure=2.0).params
    end = jax.jit(lambda key: converge(simulation, 300)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(end.status) == Status.CONVERGED
    found = jax.jit(lambda state: simulation.diagnose(state, params))(end.state)
    assert float(found["pressure"]) == pytest.approx(2, abs=1e-8)
    cell = jax.jit(lambda state: simulation.observe(state, params)["cell"])(end.state)
    np.testing.assert_allclose(cell, np.cbrt(float(found["volume"])) * np.eye(3), atol=1e-8)


def test_a_dense_structure_enlarges_its_list_and_keeps_its_diagnostics():
    crowd = ase.Atoms("X300", positions=np.random.default_rng(0).random((300, 3)))
    simulation = relaxed_structure(structure=text_of(crowd), potential="soft_sphere")
    start = jax.jit(lambda sigma: simulation.init(simulation.params | {"sigma": sigma}, jax.random.key(0)))
    overflowed, earlier = start(4.0), start(0.2)
    status = jax.jit(status_of(simulation))
    assert int(status(overflowed, simulation.params)) == Status.BUFFER_OVERFLOW
    assert int(status(earlier, simulation.params)) != Status.BUFFER_OVERFLOW
    example = enlarged(overflowed)
    larger, earlier = simulation.with_buffers_of(example), sized_like(earlier, example)
    assert earlier.neighbors.index.shape[0] >= 299 > overflowed.neighbors.index.shape[0]
    assert "formation_energy" in jax.eval_shape(larger.diagnose, earlier, larger.params)


ONE = text_of(ase.Atoms("X2", positions=[[0, 0, 0], [3, 0, 0]]))
PAIR = text_of(ase.Atoms("ArNe", positions=[[0, 0, 0], [3, 0, 0]]))
BOXED = text_of(ase.Atoms("X2", positions=[[0, 0, 0], [3, 0, 0]], cell=[6, 7, 8], pbc=True))
TOGETHER = text_of(ase.Atoms("X3", positions=[[1, 0, 0], [3, 0, 0], [1, 0, 0]]))
# The same place, through the faces of the cell.
WRAPPED = text_of(ase.Atoms("X3", positions=[[1, 0, 0], [3, 0, 0], [-5, 7, -8]], cell=[6, 7, 8], pbc=True))
PURE = text_of(crystal())
WATER = text_of(ase.Atoms("OH2", positions=[[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]))
IMPURE = crystal()
IMPURE.symbols[4] = "C"

MISTAKES = {
    "not a structure": ({"structure": "nonsense"}, "structure: line 1 = 'nonsense' is not a number of atoms"),
    "frame": ({"structure": ONE, "frame": 1}, "frame = 1; the structure has 1, choose 0 to 0, or -1"),
    "potential": ({"structure": ONE, "potential": "lenard_jones"}, "did you mean 'lennard_jones'"),
    "carbon in silicon": (
        {"structure": text_of(IMPURE), "potential": "silicon"},
        "structure: atom 4 (the first is 0) is C, but potential = 'silicon' here is for Si only",
    ),
    "not a named species": ({"structure": PAIR, "species": ("Ar",)}, "atom 1 (the first is 0) is Ne, but"),
    "no species": (
        {"structure": WATER},
        "structure: atom 0 (the first is 0) is O, but potential = 'lennard_jones' here has parameters for no species "
        'yet; change the atom, or set species = ["H", "O"] and give params epsilon and sigma in that order',
    ),
    "a species more": (
        {"structure": WATER, "potential": "morse", "species": ("O",)},
        "atom 1 (the first is 0) is H, but potential = 'morse' here is for O only; change the atom, or set species = "
        '["O", "H"] and give params epsilon and sigma in that order',
    ),
    "not an element": ({"structure": PAIR, "species": ("Ar", "Nee")}, "species: 'Nee' is not a chemical symbol"),
    "species as one text": (
        {"structure": PAIR, "species": "Ar"},
        """species = 'Ar' is one text, and a list is wanted; write ["Ar"]""",
    ),
    "species twice": ({"structure": PAIR, "species": ("Ar", "Ne", "Ar")}, "names one twice"),
    "one place": ({"structure": TOGETHER}, "structure: atoms 0 and 2 (the first is 0) are in one place"),
    "one place, wrapped": ({"structure": WRAPPED, "cutoff": 3.0}, "atoms 0 and 2 (the first is 0) are in one place"),
    "no cutoff": ({"structure": BOXED}, "needs a cutoff in a periodic cell"),
    "cutoff": ({"structure": ONE, "cutoff": -1.0}, "cutoff = -1.0 is not a length"),
    "switch": ({"structure": BOXED, "cutoff": 3.0, "switch_on": 2.5}, "switch_on = 2.5 is not between 0 and 1"),
    "exponent": ({"structure": ONE, "potential": "soft_sphere", "exponent": 1.5}, "exponent = 1.5"),
    "no cell to relax": ({"structure": ONE, "relax_cell": True}, "needs a cell; free space has none"),
    "tolerance": ({"structure": ONE, "force_tolerance": 2.0}, "force_tolerance = 2.0"),
    "too many pairs": (
        {"structure": text_of(ase.build.bulk("X", "fcc", a=5.0) * (17, 17, 17)).replace("T T T", "F F F")},
        "4913 atoms without a cutoff are too many pairs",
    ),
}


@pytest.mark.parametrize(("config", "phrase"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_in_one_line_before_a_run(config, phrase):
    with pytest.raises(UserError) as caught:
        relaxed_structure(**config)
    assert phrase in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("config", "values", "phrase"),
    [
        ({"cutoff": 3.1}, {}, "the interaction reaches 3.1, beyond half the cell, whose narrowest width is 6"),
        ({"potential": "soft_sphere"}, {"sigma": 3.5}, "the interaction reaches 3.5"),
        ({"structure": PURE, "potential": "silicon"}, {"sigma": 3.1}, "the interaction reaches 5.58"),
    ],
)
def test_a_cutoff_beyond_half_the_cell_is_refused_by_check(config, values, phrase):
    simulation = relaxed_structure(**({"structure": BOXED} | config))
    with pytest.raises(UserError, match=phrase):
        simulation.check(simulation.with_params(**values).params, jax.random.key(0))
    simulation.check(simulation.with_params(sigma=1.0).params, jax.random.key(0)) if values else None


def test_species_without_parameters_are_refused_by_check():
    simulation = relaxed_structure(structure=WATER, species=["O", "H"])
    half = [[0.2, np.nan], [np.nan, 0.1]]
    for values, phrase in [
        ({}, "epsilon of O-O is not given, so potential = 'lennard_jones' has no interaction for it .* no species"),
        (
            {"epsilon": half},
            r"epsilon of O-H is not given, .* \(it has one for O, H\); give \[params.epsilon\] as a sym",
        ),
        ({"epsilon": np.ones((2, 2))}, r"sigma of O-O is not given, .* symmetric 2 x 2 table in the order O, H"),
    ]:
        with pytest.raises(UserError, match=phrase):
            simulation.check(simulation.with_params(**values).params, jax.random.key(0))
    simulation.check(simulation.with_params(epsilon=np.ones((2, 2)), sigma=np.ones((2, 2))).params, jax.random.key(0))
    alone = relaxed_structure(structure=text_of(ase.Atoms("Ar2", positions=[[0, 0, 0], [4, 0, 0]])), species=["Ar"])
    with pytest.raises(UserError, match=r"epsilon of Ar-Ar is not given, .* as one number in the order Ar"):
        alone.check(alone.params, jax.random.key(0))


def test_tables_of_several_species_are_positive():
    simulation = relaxed_structure(structure=WATER, species=["O", "H"])
    good, bad = np.ones((2, 2)), np.array([[1.0, -1.2], [-1.2, 2.0]])
    for name in ("epsilon", "sigma"):
        params = simulation.with_params(**{"epsilon": good, "sigma": good, name: bad}).params
        with pytest.raises(UserError, match=f"{name} = -1.2 is not positive"):
            simulation.check(params, jax.random.key(0))


def test_a_scenario_whose_parameters_do_not_fit_its_cell_is_refused():
    scenario, small = find_scenario("silicon_vacancy"), crystal()
    build(scenario)
    small.set_cell(0.9 * small.cell, scale_atoms=True)
    with pytest.raises(UserError, match=r"silicon_vacancy.toml: \[params\]: the interaction reaches 5.4, beyond half"):
        build(with_values(scenario, {"sigma": 3.0, "structure": text_of(small)}))
