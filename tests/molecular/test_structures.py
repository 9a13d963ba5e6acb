"""Structures to text and to ASE and back, and refusal of invalid texts in one line."""

import io
import time

import ase
import ase.io
import numpy as np
import pytest
from ase.build import bulk
from ase.calculators.singlepoint import SinglePointCalculator
from ase.constraints import FixedPlane

from simkit.errors import UserError
from simkit.molecular.structures.extended_xyz import MAX_CHARACTERS, parse_extended_xyz, write_extended_xyz
from simkit.molecular.structures.structures import MAX_ATOMS, Structure, from_atoms, to_atoms
from tests.tables import every

FOUR = """\
4
Lattice="5.5 0.0 0.1 0.0 6.0 0.0 0.2 0.0 7.0" Properties=species:S:1:pos:R:3:velocity:R:3:kind:I:1:loose:L:1:label:S:1 \
energy=-1.25 name="four atoms" steps=12 pbc="T T T"
Si 0.0 0.1 0.2 1.0 -2.0 3e-3 1 T a
O 1.5 0.1 0.2 1.0 -2.0 3e-3 2 F bc
Si 0.0 2.1 0.2 1.0 -2.0 3e-3 1 T d
O 0.0 0.1 2.2 1.0 -2.0 3e-3 2 F e
"""
TWO = "2\nProperties=species:S:1:pos:R:3 step=2\nAr 0 0 0\nAr 1 1 1\n"


def glass(count=50, dtype=np.float64):
    rng, note = np.random.default_rng(0), 'a "b" \\ c'
    return Structure(
        symbols=tuple(rng.choice(["Si", "O", "X"], count)),
        position=(rng.normal(size=(count, 3)) * 10.0 ** rng.integers(-12, 6, (count, 1))).astype(dtype),
        cell=(10 * np.eye(3) + rng.normal(size=(3, 3))).astype(dtype),
        periodic=True,
        arrays={
            "velocity": rng.normal(size=(count, 3)).astype(dtype),
            "charge_state": rng.integers(-3, 3, count),
            "is_surface": rng.random(count) < 0.5,
        },
        info={"energy": -1 / 3, "iteration": 7, "converged": True, "note": note, "moment": np.ones(2) / 7},
    )


def assert_equal(one, other):
    assert one.symbols == other.symbols and one.periodic == other.periodic
    np.testing.assert_array_equal(one.position, other.position)
    assert (one.cell is None) == (other.cell is None)
    if one.cell is not None:
        np.testing.assert_array_equal(one.cell, other.cell)
    for first, second in ((one.arrays, other.arrays), (one.info, other.info)):
        assert set(first) == set(second)
        for name, value in first.items():
            np.testing.assert_array_equal(value, second[name])


@every("dtype", [np.float64, np.float32])
def test_conversion_to_text_preserves_every_bit(dtype):
    structure = glass(dtype=dtype)
    (again,) = parse_extended_xyz(write_extended_xyz([structure]))
    back = {name: array.astype(structure.arrays[name].dtype) for name, array in again.arrays.items()}
    position, cell = again.position.astype(dtype), again.cell.astype(dtype)
    assert_equal(Structure(again.symbols, position, cell, again.periodic, back, again.info), structure)


def test_conversion_to_ase_preserves_every_bit():
    assert_equal(from_atoms(to_atoms(glass())), glass())


def test_ase_reads_what_is_written():
    structure = glass()
    frames = ase.io.read(io.StringIO(write_extended_xyz([structure, structure])), ":", format="extxyz")
    assert len(frames) == 2
    atoms = frames[1]
    np.testing.assert_array_equal(atoms.positions, structure.position)
    np.testing.assert_array_equal(atoms.cell, structure.cell)
    np.testing.assert_array_equal(atoms.arrays["velocity"], structure.arrays["velocity"])
    assert atoms.get_chemical_symbols() == list(structure.symbols) and atoms.pbc.all()
    assert atoms.get_potential_energy() == -1 / 3


def test_what_ase_writes_is_read():
    atoms = bulk("SiC", "zincblende", a=4.36) * (2, 1, 1)
    atoms.set_momenta(np.arange(12.0).reshape(-1, 3))
    atoms.calc = SinglePointCalculator(atoms, energy=-3.5, forces=np.ones((4, 3)), stress=np.arange(6.0))
    stream = io.StringIO()
    ase.io.write(stream, [atoms, atoms], format="extxyz")
    frames = parse_extended_xyz(stream.getvalue())
    assert len(frames) == 2
    # ASE writes eight decimals.
    np.testing.assert_allclose(frames[1].position, atoms.positions, rtol=0, atol=5e-9)
    np.testing.assert_array_equal(frames[1].cell, atoms.cell)
    assert frames[1].symbols == ("Si", "C", "Si", "C") and frames[1].periodic
    assert frames[1].info["energy"] == -3.5
    np.testing.assert_array_equal(frames[1].arrays["forces"], np.ones((4, 3)))
    np.testing.assert_array_equal(frames[1].arrays["momenta"], atoms.get_momenta())


def test_a_plain_file_is_free_space_and_its_comment_is_not_read():
    (water,) = parse_extended_xyz("3\r\nBob's water, nan [eV\r\nO 0 0 0\r\nH .757 .586 0.\r\nH -.757 5.86e-1 0\r\n\r\n")
    assert water.cell is None and not water.periodic and not water.info
    np.testing.assert_array_equal(water.position, [[0, 0, 0], [0.757, 0.586, 0], [-0.757, 0.586, 0]])


@every("flags", [("F", "F", "F"), ("T", "T", "F"), ("F", "T", "F")])
def test_a_cell_that_is_not_periodic_along_all_axes_is_preserved(flags):
    (structure,) = parse_extended_xyz(FOUR.replace("T T T", " ".join(flags)))
    assert tuple(np.broadcast_to(structure.periodic, 3)) == tuple(flag == "T" for flag in flags)
    assert structure.cell is not None and tuple(to_atoms(structure).pbc) == tuple(flag == "T" for flag in flags)
    assert_equal(parse_extended_xyz(write_extended_xyz([structure]))[0], structure)
    assert_equal(from_atoms(to_atoms(structure)), structure)


def test_a_structure_in_the_plane_is_written_at_height_zero():
    plane = Structure(("X", "X"), np.array([[0.1, 0.2], [0.3, 0.4]]), np.diag([2.0, 3.0]), periodic=True)
    atoms = ase.io.read(io.StringIO(write_extended_xyz([plane])), format="extxyz")
    np.testing.assert_array_equal(atoms.positions, [[0.1, 0.2, 0], [0.3, 0.4, 0]])
    np.testing.assert_array_equal(atoms.cell, np.diag([2.0, 3.0, 1.0]))
    assert list(atoms.pbc) == [True, True, False]
    np.testing.assert_array_equal(to_atoms(plane).positions, atoms.positions)


MISTAKES = {
    "empty": (lambda t: "  \n\n", "line 1: '' is not a number of atoms"),
    "too long": (lambda t: " " * (MAX_CHARACTERS + 1), "over 8 MiB"),
    "no number of atoms": (lambda t: "four\n" + t, "line 1: 'four' is not a number of atoms"),
    "no atoms": (lambda t: "0\n\n", "line 1: 0 atoms, and 0 follow; a structure has 1 to"),
    "too many frames": (lambda t: "1\n\nX 0 0 0\n" * 10_001, "over 8 MiB or 10000 frames; give fewer"),
    "too many atoms": (lambda t: f"{MAX_ATOMS + 1}\n\nSi 0 0 0", f"has 1 to {MAX_ATOMS}"),
    "only a number": (lambda t: "4", "line 1: 4 atoms, and 0 follow"),
    "atoms missing": (lambda t: t.replace("4\nLat", "5\nLat"), "line 1: 5 atoms, and 4 follow"),
    "atoms to spare": (lambda t: t.replace("4\nLat", "3\nLat"), "line 6: 'O 0.0 0.1 2.2 1.0 -2.0 3e-3 2 F e'"),
    "a blank line": (lambda t: t + "\n" + TWO, "line 7: '' is not a number of atoms"),
    "column missing": (lambda t: t.replace("2 F bc", "2 F"), "line 4: 9 columns, not the 10 of species, pos,"),
    "NaN": (lambda t: t.replace("1.5", "nan"), "line 4: pos = 'nan' is not a finite number"),
    "not a number": (lambda t: t.replace("1.5", "1,5"), "line 4: pos = '1,5' is not a finite number"),
    "not an integer": (lambda t: t.replace(" 2 F", " 2.5 F"), "line 4: kind = '2.5' is not an integer"),
    "not a logical": (lambda t: t.replace(" 2 F", " 2 no"), "line 4: loose = 'no' is not T or F"),
    "unknown species": (lambda t: t.replace("O 1.5", "Oo 1.5"), "line 4: 'Oo' is not a chemical symbol"),
    "unknown element": (
        lambda t: "1\nProperties=Z:I:1:pos:R:3\n999 0 0 0\n",
        "line 3: '999' is not a chemical element; write one such as Si or 14",
    ),
    "Lattice too short": (lambda t: t.replace(" 7.0", ""), "line 2: Lattice is not nine numbers"),
    "Lattice in words": (lambda t: t.replace("7.0", "long"), "line 2: Lattice is not nine numbers"),
    "Lattice infinite": (lambda t: t.replace("7.0", "inf"), "frame at line 1: cell is not finite"),
    "Lattice flat": (
        lambda t: t.replace("0.2 0.0 7.0", "0.0 3.0 0.0"),
        "frame at line 1: its lattice vectors do not span",
    ),
    "Lattice twice": (lambda t: t.replace("energy", 'Lattice="1 0 0 0 1 0 0 0 1" e'), "Lattice is given twice"),
    "lattice": (lambda t: t.replace("Lattice", "lattice"), "line 2: 'lattice' means nothing; write Lattice"),
    "pbc too short": (
        lambda t: t.replace("T T T", "T T"),
        "pbc = '[True, True]' is not three of T and F; write it like pbc=",
    ),
    "periodic without a cell": (lambda t: TWO.replace("step=2", 'pbc="T T T"'), "lattice vectors do not span space"),
    "open quote": (lambda t: t.replace("four atoms", 'four" atoms'), 'a quote in the comment is not closed; add its "'),
    "remark not finite": (lambda t: t.replace("-1.25", "nan"), "frame at line 1: energy is not finite"),
    "no position": (lambda t: t.replace(":pos:", ":place:"), "line 2: Properties lacks pos:R:3"),
    "unknown kind": (lambda t: t.replace("kind:I", "kind:Q"), "line 2: Properties has 'kind:Q:1'"),
    "billions of columns": (lambda t: t.replace("kind:I:1", "kind:I:999999999"), "'kind:I:999999999'"),
    "a column twice": (lambda t: t.replace("kind:I", "velocity:I"), "line 2: Properties names velocity twice"),
    "a column's other name": (
        lambda t: t.replace("velocity", "positions"),
        "Properties names positions twice, or it is reserved",
    ),
    "two elements": (lambda t: t.replace("kind", "Z"), "line 3: species and Z are different elements"),
    "column and remark": (lambda t: t.replace("kind:I", "steps:I"), "'steps' is both a column and in the comment"),
    "deep JSON": (lambda t: t.replace("four atoms", "_JSON " + "[" * 9000), "the comment"),
    "second frame": (lambda t: t + TWO.replace("Ar 1 1 1", "Ar 1 1 x"), "line 10: pos = 'x' is not a finite number"),
}


@every(("change", "phrase"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_text_is_one_line_with_its_place(change, phrase):
    text = change(FOUR)
    assert text != FOUR
    with pytest.raises(UserError) as caught:
        parse_extended_xyz(text, "file.xyz")
    message = str(caught.value)
    assert message.startswith("file.xyz: ") and phrase in message
    assert message.isprintable() and len(message) < 250


def test_a_large_structure_is_read_in_a_moment():
    text = write_extended_xyz([glass(count=20_000)])
    began = time.perf_counter()
    parse_extended_xyz(text)
    # It takes about half a second; anything quadratic would take minutes.
    assert time.perf_counter() - began < 10


@every(
    ("atoms", "phrase"),
    [
        (ase.Atoms(), "there are no atoms"),
        (ase.Atoms("Si", pbc=True, cell=[3, 3, 0]), "do not span space"),
        (ase.Atoms("Si", positions=[[np.nan, 0, 0]]), "position is not finite"),
        (ase.Atoms("Si", constraint=FixedPlane(0, (1, 0, 0))), "FixedPlane holds atoms in part"),
        (ase.Atoms("Si", info={"energy": np.inf}), "energy is not finite"),
    ],
)
def test_unsupported_atoms_are_refused(atoms, phrase):
    with pytest.raises(UserError, match=phrase):
        from_atoms(atoms)


@every(
    ("values", "phrase"),
    [
        ({"position": np.zeros((1, 3))}, r"give \(2, 3\)"),
        ({"cell": np.eye(2)}, "3 lattice vectors"),
        ({"periodic": True}, "needs a cell"),
        ({"arrays": {"velocity": np.zeros((3, 3))}}, "'velocity' has shape"),
        ({"arrays": {"pos": np.zeros(2)}}, "'pos' cannot name an array"),
        ({"arrays": {"a b": np.zeros(2)}}, "'a b' cannot name an array"),
        ({"info": {"pbc": "T"}}, "'pbc' cannot name an entry of info"),
        ({"info": {"stress": 1.0}}, "tensor"),
        ({"info": {"note": "a\nb"}}, "several lines"),
    ],
)
def test_inconsistent_structures_are_refused(values, phrase):
    good = {"symbols": ("Si", "Si"), "position": np.zeros((2, 3))}
    Structure(**good)
    with pytest.raises(UserError, match=phrase):
        Structure(**(good | values))


def test_a_word_with_a_blank_is_not_written():
    structure = Structure(("Si",), np.zeros((1, 3)), arrays={"label": np.array(["a b"])})
    with pytest.raises(UserError, match="a word with a blank"):
        write_extended_xyz([structure])
    with pytest.raises(UserError, match="no structure to write"):
        write_extended_xyz([])


CELL = 'Lattice="4 0 0 0 4 0 0 0 4"'
DIALECTS = {
    "byte-order mark": "\ufeff2\n{cell} Properties=species:S:1:pos:R:3\nAr 0 0 0\nAr 2 2 2\n",
    "exponents of Fortran": "2\nLattice='4.D0 0 0 0 0.4d+01 0 0 0 4' Properties=species:S:1:pos:R:3\n"
    "Ar 0 0 0.0D+00\nAr 2.D0 .2d1 2\n",
    "stress of Voigt": '2\n{cell} Properties=species:S:1:pos:R:3 virial="1 2 3 4 5 6"\nAr 0 0 0\nAr 2 2 2\n',
    "stress and forces": "2\n{cell} Properties=species:S:1:pos:R:3:forces:R:3 energy=1 stress='1 2 3 4 5 6'\n"
    "Ar 0 0 0 1 0 0\nAr 2 2 2 1 0 0\n",
    "atomic numbers": "2\n{cell} Properties=species:S:1:pos:R:3:Z:I:1\nAr 0 0 0 18\nAr 2 2 2 18\n",
    "atomic numbers only": "2\n{cell} Properties=Z:I:1:pos:R:3\n18 0 0 0\n18 2 2 2\n",
    "labels": "2\n{cell} Properties=species:S:1:pos:R:3\nAr1 0 0 0\nAr12 2 2 2\n",
    "held atoms": "2\n{cell} Properties=species:S:1:pos:R:3:move_mask:L:1\nAr 0 0 0 F\nAr 2 2 2 T\n",
    "a slab": "2\nLattice='4 0 0 0 4 0 0 0 0' pbc='T T F' Properties=species:S:1:pos:R:3\nAr 0 0 0\nAr 2 2 2\n",
}


def test_texts_as_other_programs_write_them_are_read():
    for name, text in DIALECTS.items():
        (frame,) = parse_extended_xyz(text.replace("{cell}", CELL))
        assert frame.symbols == ("Ar", "Ar"), name
        np.testing.assert_array_equal(frame.position, [[0, 0, 0], [2, 2, 2]], name)
        height = 2.0 if name == "a slab" else 4.0
        np.testing.assert_array_equal(frame.cell, np.diag([4, 4, height]), name)
        assert frame.periodic == ((True, True, False) if name == "a slab" else True), name
        assert set(frame.arrays) <= {"forces", "frozen"}, name
        if name == "stress of Voigt":
            np.testing.assert_array_equal(frame.info["virial"], [[1, 6, 5], [6, 2, 4], [5, 4, 3]])
        if name == "held atoms":
            assert frame.arrays["frozen"].tolist() == [True, False]
            (again,) = parse_extended_xyz(write_extended_xyz([frame]))
            assert again.arrays["frozen"].tolist() == [True, False]
            assert to_atoms(frame).constraints[0].index.tolist() == [0]
