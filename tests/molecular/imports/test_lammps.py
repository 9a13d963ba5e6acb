"""Data files and commands of LAMMPS: what is read of files with all oddities, and what is refused."""

import numpy as np
import pytest

from simkit import molecular
from simkit.errors import UserError
from tests.molecular.imports.lammps_files import DATA, STYLES, silicon_carbide


def test_equal_molecules_in_any_order_of_atoms_are_one_kind_and_image_flags_unwrap_them():
    found = molecular.from_lammps(DATA, STYLES)
    assert found.settings["molecules"].keys() == {"molecule_1"}
    kind = found.settings["molecules"]["molecule_1"]
    assert kind["count"] == 2
    assert kind["bonds"][0]["members"] == [[0, 1], [2, 3]]
    # Atoms 7, 3, 1, 10, 5 of the first molecule, as the file lists them, and 2, 9, 4, 8, 6.
    assert found.order.tolist() == list(range(10))
    assert found.velocity[:, 2].tolist() == [7, 3, 1, 10, 5, 2, 9, 4, 8, 6]
    rows = np.array([line.split() for line in found.settings["start"]["positions"].splitlines()], float)
    # One cell back along b = (2, 13, 0), from the corner (-3, 1, 2).
    np.testing.assert_allclose(rows[2], [9.261638 + 3 - 2, 12.811642 - 1 - 13, 11.22066 - 2])
    assert found.settings["cell"] == {"vectors": [[14.0, 0, 0], [2, 13, 0], [1, -1.5, 12]]}
    assert found.settings["particles"]["A"]["charge"] == [-0.4, 0.2, -0.39, 0.21]
    assert found.settings["parameters"]["bond_2_stiffness"] == 240
    assert found.settings["interactions"][0]["values"]["sigma"]["A_B"] == "(sigma_A_A + sigma_B_B)/2"
    assert found.settings["interactions"][0]["values"]["ends"]["B_type_3"] == 4.2


def test_coefficients_of_the_data_file_and_of_commands_are_the_same():
    sections = "Pair Coeffs # lj/cut\n\n1 0.1 3.0\n\nBond Coeffs # harmonic\n\n1 100 1.4\n2 120 1.6\n\n"
    data = "t\n2 atoms\n1 bonds\n1 atom types\n2 bond types\n0 9 xlo xhi\n0 9 ylo yhi\n0 9 zlo zhi\n\n" + sections
    data += "Masses\n\n1 1.0\n\nAtoms # molecular\n\n1 1 1 1 1 1\n2 1 1 2 2 2\n\nBonds\n\n1 2 1 2\n"
    here = molecular.from_lammps(data, "pair_style lj/cut 2.5")
    commands = {"pair_style": "lj/cut 2.5", "pair_coeff": "* * 0.1 3.0", "bond_style": "harmonic"}
    there = molecular.from_lammps(data.replace(sections, ""), commands | {"bond_coeff": ["* 7 7", "2 120 1.6"]})
    assert here.settings == there.settings


def test_tersoff_becomes_the_interaction_of_its_file_with_the_element_of_each_type():
    interaction, particles = (silicon_carbide().settings[key] for key in ("interactions", "particles"))
    elements = {"type_1": "C", "type_2": "Si"}
    assert interaction == [{"potential": "tersoff_file", "file": "SiC.tersoff", "elements": elements}]
    assert {name: each["count"] for name, each in particles.items()} == {"type_1": 4, "type_2": 4}


def test_commands_of_a_file_of_a_potential_are_refused_with_their_line():
    for message, change in {
        "coefficients, line 2: pair_style tersoff takes no further word": {"style": "pair_style tersoff shift 0.1"},
        "coefficients, line 3: pair_style tersoff needs one command pair_coeff": {
            "coefficients": "pair_coeff * * SiC.tersoff C"
        },
    }.items():
        with pytest.raises(UserError, match=message):
            silicon_carbide(**change)


MISTAKES = {
    "data, line 26: 'Ellipsoids' is no section that is read": ("Masses\n", "Ellipsoids\n"),
    "data, line 9: '2 wall types' is no line of the header": ("2 bond types", "2 wall types"),
    "data, line 34: has 9 words, and an atom of style full is: id molecule type charge": ("439373 0 0 0", "439373 0 0"),
    "data, line 34: 'nan' is no finite number, and is read as a coordinate": ("8.261184", "nan"),
    "data, line 35: atom 7 occurs twice": ("\n3 1 2", "\n7 1 2"),
    "data, line 60: atom '77' does not exist": ("\n1 1 7 3\n", "\n1 1 77 3\n"),
    "data, line 61: the bond of atoms 7 3 is that of line 60; keep one": ("\n2 2 3 1\n", "\n2 2 7 3\n"),
    "data, line 62: the bond of atoms 1 3 is that of line 61; keep one": ("\n3 1 1 10\n", "\n3 1 1 3\n"),
    "data, line 58: the section Bonds has 7 rows, and the header says 8": ("\n1 1 7 3\n", "\n"),
    "data, line 60: '9' is read as a type of bonds, which is a whole number from 1 to 2": (
        "\n1 1 7 3\n",
        "\n1 9 7 3\n",
    ),
    "the file has no line 'xlo xhi'": ("  -3.0 11.0 xlo xhi\n", ""),
    "data, line 15: 11 is not below -3": ("-3.0 11.0", "11.0 -3.0"),
    "type 3 has no mass": ("3 1.0\n", ""),
}
COMMANDS = {
    "coefficients, line 3: 'class2' is no style of bonds that is read": ("bond_style harmonic", "bond_style class2"),
    "coefficients, line 7: 'lj/charmm/coul/long' is no style of pairs": (
        "lj/cut/coul/cut 4.5",
        "lj/charmm/coul/long 8",
    ),
    "coefficients, line 10: there are 1 coefficients; style harmonic of bonds takes K r0": ("100 1.4", "100"),
    "coefficients, line 14: the weight 0.5 of 1-4 pairs is not served": ("30 0.0", "30 0.5"),
    "coefficients, line 9: weights of pairs one and two bonds apart": ("lj/coul 0 0 0.5", "lj/coul 0.1 0 0.5"),
    "coefficients, line 1: the command 'create_box' is not read": ("units real", "create_box 1 all"),
    "coefficients, line 1: variables are not read": ("units real", "units ${u}"),
    "coefficients, line 1: 'shake' is no fix": ("units real", "fix 1 all shake 1e-4 20 0 b 1"),
    "bond type 2 has no coefficients; write bond_coeff 2 K r0": ("bond_coeff 2 120 1.6", ""),
    "pairs of types 3 and 3 have no coefficients": ("2* 2*", "2 2"),
    "an image flag is not zero along an axis that does not repeat": ("units real", "boundary p f p"),
}


def test_a_mistake_is_refused_in_one_line_with_the_line_of_the_file():
    for mistakes, at in ((MISTAKES, 0), (COMMANDS, 1)):
        for message, change in mistakes.items():
            texts = [DATA, STYLES]
            texts[at] = texts[at].replace(*change, 1)
            assert texts != [DATA, STYLES], change
            with pytest.raises(UserError) as error:
                molecular.from_lammps(*texts)
            assert message in str(error.value)
            assert "\n" not in str(error.value)
    for blank in ("", " \n"):
        with pytest.raises(UserError, match="data, line 1: the file has no line 'xlo xhi'"):
            molecular.from_lammps(blank)
