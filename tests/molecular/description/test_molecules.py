"""Molecules as data: bonded energies, exclusions and 1-4 pairs, places at random, and what is refused."""

import jax
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.core.simulation import as_arrays
from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from tests.tables import every

# Two molecules of five atoms, a ring of three with a tail, one across a face of the cell, and a single atom.
PLACES = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.4, 0.9, 0.2], [1.8, 0.4, 0.7], [2.6, -0.3, 0.4]])
BONDS = [[0, 1], [1, 2], [2, 0], [1, 3], [3, 4]]
SIDE = 5.6
ATOMS = np.concatenate([PLACES + 0.3, PLACES @ [[0, 1, 0], [0, 0, 1], [1, 0, 0]] + [2.6, 2.2, 1.9], [[1.0, 2.9, 3.1]]])
VALUES = {"k": 3.0, "b": 0.9, "k_tail": 5.0, "bend": 2.0, "theta_0": 1.2, "c1": 0.4, "c3": -0.3, "twist": 0.7}


def terms(written):
    """Return the terms of the molecule by name, or as expressions."""
    if written == "named":
        return {
            "bonds": [
                {"potential": "harmonic", "members": BONDS[:3], "values": {"stiffness": "k", "length": "b"}},
                {"potential": "harmonic", "members": BONDS[3:], "values": {"stiffness": "k_tail", "length": 1.1}},
            ],
            "angles": [{"potential": "harmonic", "values": {"stiffness": "bend", "angle": "theta_0"}}],
            "dihedrals": [{"potential": "ryckaert_bellemans", "values": {"c1": "c1", "c3": "c3"}}],
            "impropers": [{"potential": "harmonic", "members": [[1, 0, 2, 3]], "values": {"stiffness": "twist"}}],
        }
    ryckaert_bellemans = "c1*cos(phi - pi) + c3*cos(phi - pi)**3"
    return {
        "bonds": [
            {"energy": "k/2*(r - b)**2", "members": BONDS[:3]},
            {"energy": "w/2*(r - 1.1)**2", "members": BONDS[3:], "values": {"w": "k_tail"}},
        ],
        "angles": [{"energy": "bend/2*(theta - theta_0)**2"}],
        "dihedrals": [{"energy": ryckaert_bellemans}],
        "impropers": [{"energy": "twist/2*phi**2", "members": [[1, 0, 2, 3]]}],
    }


def made(written="named", images=None, exclude="angles", one_four=0.5, side=SIDE, **settings):
    pairs = {"potential": "lennard_jones", "values": {"epsilon": 1, "sigma": 0.8}, "cutoff": 1.8, "ending": "truncate"}
    return dict(
        particles={"A": {}, "B": {"count": 1}},
        molecules={"tailed": {"atoms": {"A": 5}, "count": 2, "exclude": exclude, **terms(written)}},
        interactions=[pairs | ({} if one_four is None else {"one_four": one_four})],
        start={"positions": (ATOMS % side).tolist()},
        cell={"lengths": [side] * 3} | ({} if images is None else {"images": images}),
        **settings,
    )


def energy_of(keys):
    """Return the energy of the start; no tasks are compiled."""
    made, params = composition(read(keys, SETTINGS), VALUES), as_arrays(VALUES)
    at = made.placing.standing(params), made.room.cell(params), params
    return jax.jit(lambda *at: made.interaction.energy(*at, made.interaction.prepare(*at)))(*at)


def test_a_molecule_as_large_as_half_the_cell_makes_the_energy_nan():
    """Its ends are three bonds apart, and another image of the one is nearer to the other."""
    for side, is_undefined in ((4.2, True), (SIDE, False)):
        assert np.isnan(energy_of(made(side=side))) == is_undefined


def started(simulation, *names):
    """Return diagnostics of the start."""

    def start(params):
        numbers = simulation.diagnose(simulation.init(params, jax.random.key(0)), params)
        return [numbers[name] for name in names]

    return jax.jit(start)(as_arrays(simulation.params))


def test_molecules_of_a_structure_are_whole_in_cells_of_any_size(x64):
    text = f'10\nLattice="{SIDE} 0 0 0 {SIDE} 0 0 0 {SIDE}" Properties=species:S:1:pos:R:3\n'
    text += "\n".join(f"Ar {x} {y} {z}" for x, y, z in ATOMS[:10] % SIDE)
    simulation = system(
        particles={"Ar": {}},
        molecules={"tailed": {"atoms": {"Ar": 5}, "count": 2, **terms("named")}},
        start={"structure": text},
        cell={"lengths": ["side"] * 3},
        observed=["molecules"],
        parameters=VALUES | {"side": 7.0},
    )
    numbers = started(simulation, "bond_length", "mean_square_end_to_end", "mean_square_gyration")
    lengths = [np.linalg.norm(PLACES[i] - PLACES[j]) for i, j in BONDS]
    ends = np.sum((PLACES[0] - PLACES[-1]) ** 2)
    expected = np.sqrt(np.mean(np.square(lengths))), ends, np.mean(np.sum((PLACES - PLACES.mean(axis=0)) ** 2, axis=1))
    np.testing.assert_allclose(numbers, expected, rtol=1e-12)


CHAIN = {"atoms": {"A": 4}, "bonds": [{"potential": "harmonic", "members": "chain", "values": {"stiffness": 1}}]}


@every(
    ("molecule", "options", "message"),
    [
        ({"atoms": ["A", "C"]}, {}, "molecules.m.atoms = 'C' is no species"),
        ({"atoms": []}, {}, "names no atom"),
        (
            {"bonds": [{"potential": "harmonic", "members": [[0, 4]]}]},
            {},
            r"bonds\[0\].members\[0\] = \[0, 4\] names no atom",
        ),
        (
            {"pairs": [{"potential": "harmonic", "members": [[0, 2], [2, 1]]}]},
            {},
            r"members has \[2, 1\], atoms that are bonded",
        ),
        ({"bonds": [{"potential": "fene", "members": "chain"}]}, {}, "values.extent is missing"),
        ({"bonds": [{"energy": "k*x", "members": "chain"}]}, {}, "energy"),
        ({"bonds": [{"energy": "k", "members": "chain"}]}, {}, "does not depend on r"),
        ({"angles": [{"potential": "harmonic", "values": {"stifness": 1}}]}, {}, "stifness is not taken by the energy"),
        ({"atoms": ["A"], "bonds": [], "angles": [{"energy": "k*theta"}]}, {}, "gives no angles"),
        ({"coordinates": [[0, 0, 0]]}, {}, "1 places for 4 atoms"),
        ({"coordinates": [[0, 0]] * 4}, {}, "2 dimensions, and the system 3"),
        ({"structure": "1\n\nAr 0 0 0\n"}, {}, "has the atoms Ar, and the molecule A A A A"),
        ({"coordinates": [[0, 0, 0]] * 4, "bond_length": 1}, {}, "has no effect beside coordinates"),
        ({"bonds": [{"potential": "harmonic", "members": [[0, 1], [2, 3]]}]}, {}, "coordinates is missing"),
        ({"dihedrals": [{"energy": "k*phi"}]}, {"dimension": 2, "cell": {"lengths": [9, 9]}}, "three dimensions"),
        ({"angles": [{"energy": "k*theta"}]}, {"parameters": {"theta": 1.0, "k": 1.0}}, "the name 'theta' is taken"),
        ({"count": 40}, {"start": {"lattice": "face_centered_cubic", "repeats": [1, 1, 40]}}, "lattice"),
        ({}, {"start": {"positions": [[0, 0, 0]] * 3}}, "counts make 4 particles, and there are 3 places"),
        ({}, {"observed": ["energy_of_particle"]}, "bonds"),
        (
            {"atoms": {"A": 2}},
            {"interactions": [{"energy": "1/r", "cutoff": 2, "one_four": 0.5}]},
            "no molecule has atoms",
        ),
    ],
)
def test_what_does_not_fit_a_molecule_is_refused(molecule, options, message):
    usual = {"cell": {"lengths": [9, 9, 9]}, "parameters": {"k": 1.0, "length": 1.0, "stiffness": 1.0, "angle": 1.0}}
    with pytest.raises(UserError, match=message):
        system(particles={"A": {}}, molecules={"m": CHAIN | molecule}, **(usual | options))


def test_a_bond_that_is_torn_at_the_start_is_named():
    simulation = system(
        particles={"A": {}},
        molecules={"m": {"atoms": {"A": 3}, "bonds": [{"potential": "fene", "members": "chain"}]}},
        start={"positions": [[0, 0, 0], [1, 0, 0], [2.6, 0, 0]]},
        parameters={"stiffness": 30.0, "extent": 1.5},
    )
    with pytest.raises(
        UserError, match=r"molecules.m.bonds\[0\]: has no finite energy .* particles 1, 2, .* 1.6 apart"
    ):
        simulation.check_values(simulation.params, jax.random.key(0))


RIGID = {
    "dimension": 3,
    "particles": {"O": {"charge": "-2*q", "mass": 16.0, "diameter": 2.8}, "H": {"charge": "q", "diameter": 0.8}},
    "molecules": {
        "water": {
            "atoms": ["O", "H", "H"],
            "count": 8,
            "coordinates": [[0, 0, 0], [0.8, 0.6, 0], [-0.8, 0.6, 0]],
            "rigid": [
                {"members": [[0, 1], [0, 2]], "length": "r_OH"},
                {"members": [[1, 2]], "length": "1.63298*r_OH"},
            ],
        }
    },
    "interactions": [
        {"potential": "ewald", "tolerance": 1e-4, "values": {"coulomb_constant": 332.06}},
        {
            "potential": "lennard_jones",
            "between": ["O_O"],
            "cutoff": 4.0,
            "values": {"epsilon": 0.1554, "sigma": 3.166},
        },
    ],
    "cell": {"lengths": [8.5, 8.5, 8.5]},
    "task": "dynamics",
    "dynamics": {"method": "velocity_verlet", "time_step": "time_step", "temperature": 0.6},
    "parameters": {"q": 0.4238, "r_OH": 1.0, "time_step": 0.01},
}


def test_rigid_bonds_are_refused_where_nothing_keeps_their_length():
    with pytest.raises(UserError, match=r'molecules.water.rigid is of task = "dynamics" alone; give stiff bonds'):
        system(**{**RIGID, "task": "relax", "dynamics": None})
    with pytest.raises(UserError, match="does not keep rigid bonds; take velocity_verlet"):
        system(**{**RIGID, "dynamics": RIGID["dynamics"] | {"method": "brownian", "friction": 1.0}})
