"""Structures to text and to ASE and back, and refusal of invalid texts in one line."""

import random
import subprocess
import sys

import numpy as np

from simkit.errors import UserError
from simkit.molecular.structures.extended_xyz import parse_extended_xyz, write_extended_xyz
from tests.molecular.test_structures import FOUR, TWO, assert_equal


def test_ase_is_imported_only_where_a_structure_is():
    program = (
        "import sys, simkit.molecular, simkit.molecular.structures.structures, simkit.export.data_files\n"
        "from simkit.cli.main import main\n"
        "main(['show', 'soft_sphere_packing', '--json'])\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'ase']"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


PIECES = [*"- \n\t\0\r\"'{}]=:\\TFX\u2028\u0663é", 'Lattice="0 0 0 0 0 0 0 0 0"', "_JSON [", "9" * 30]


PIECES += ["nan", "inf", "1e999", "1e308", "1_0", "VEC1", "Lattice", "pbc", "pbc=T", "Properties=", "uid=4", "stress=3"]


PIECES += ["virial=", "energy", "numbers", "species:S:1", "pos:R:3", "move_mask", "forces:R:3", "energy:R:1"]


def mutated(text, rng):
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(letters) + 1)
        stop = start + rng.randint(0, rng.choice([1, 3, 40]))
        how = rng.randrange(4)
        if how == 0:
            letters[start:stop] = []
        elif how == 1:
            letters[start:stop] = rng.choice(PIECES)
        elif how == 2:
            letters[start:start] = letters[stop : stop + rng.randint(1, 60)]
        else:
            letters[start : start + 1] = chr(rng.randrange(32, 127))
    return "".join(letters)


def test_mutated_texts_give_finite_numbers_or_an_error_of_one_line():
    rng, outcomes = random.Random(0), {"read": 0, "refused": 0}
    for _ in range(3000):
        text = mutated(FOUR + TWO, rng)
        try:
            frames = parse_extended_xyz(text, "file.xyz")
        except UserError as error:
            assert str(error).startswith("file.xyz: ") and str(error).isprintable(), text
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for frame, again in zip(frames, parse_extended_xyz(write_extended_xyz(frames)), strict=True):
            assert np.isfinite(frame.position).all(), text
            assert_equal(frame, again)
    # The mutations are neither all harmless nor all fatal.
    assert min(outcomes.values()) > 100
