"""Small geometry: cells, lattices and their images, texts of structures, potentials at their limits."""

import random
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.potentials import lennard_jones
from simkit.molecular.structures.extended_xyz import parse_extended_xyz, write_extended_xyz
from tests.molecular.potentials.test_potentials import EVERY, LENGTHS, program
from tests.molecular.test_spaces import SHAPES, cell_of
from tests.molecular.test_structures import FOUR, TWO, assert_equal
from tests.tables import every


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


@every("dimension", [2, 3])
@every("name", SHAPES)
def test_triclinic_displacement_is_the_shortest_image_up_to_half_the_smallest_width(x64, name, dimension):
    cell = cell_of(name, dimension)
    space = spaces.triclinic(cell)
    rng = np.random.default_rng(3)
    a, b = (jnp.asarray(x) for x in rng.uniform(-6, 6, (2, 400, dimension)))
    found = np.asarray(spaces.displacement(space, a, b))
    shifts = np.stack(np.meshgrid(*[np.arange(-9, 10)] * dimension), -1).reshape(-1, dimension) @ np.asarray(cell)
    shortest = np.linalg.norm(np.asarray(a - b)[:, None] + shifts, axis=-1).min(axis=1)
    within = shortest < space.widths.min() / 2
    assert 20 < within.sum() < 400
    # Round-off of coordinates of order 30.
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1)[within], shortest[within], rtol=0, atol=5e-14)
    # Beyond that the image is an image still.
    whole = np.asarray(a - b - found) @ np.linalg.inv(cell)
    np.testing.assert_allclose(whole, np.round(whole), atol=1e-13)


@every("dimension", [2, 3])
def test_a_rectangular_cell_is_the_same_space_either_way(x64, dimension):
    box = jnp.array([3.0, 4.0, 5.0])[:dimension]
    straight, general = spaces.of_cell(box, dimension), spaces.of_cell(jnp.diag(box), dimension)
    a, b = (jnp.asarray(x) for x in np.random.default_rng(4).uniform(-9, 9, (2, 100, dimension)))
    np.testing.assert_allclose(spaces.displacement(general, a, b), spaces.displacement(straight, a, b), atol=1e-14)
    np.testing.assert_allclose(general.wrap(a), straight.wrap(a), atol=1e-14)
    np.testing.assert_allclose(general.widths, straight.widths, rtol=1e-15)
    assert float(general.volume) == pytest.approx(float(straight.volume), rel=1e-15)


def test_overlapping_starts_have_finite_energies_and_forces_in_single_precision():
    distance = jnp.concatenate([jnp.zeros(2), jnp.logspace(-30, 0, 301)]).astype(jnp.float32)
    for name, (energy, force, _) in program(False)(distance).items():
        assert energy.dtype == force.dtype == jnp.float32, name
        assert bool(jnp.isfinite(energy).all()), name
        # Minimizers square forces and sum over thousands of particles.
        assert bool(jnp.isfinite(1e4 * force**2).all()), name


def test_a_switch_changes_nothing_before_its_shell_and_falls_monotonically_through_it(x64):
    potential, parameters = EVERY["lennard-jones, switched"]
    before = jnp.linspace(0.8, 1.6, 20)
    np.testing.assert_array_equal(potential.energy(before, **parameters), lennard_jones().energy(before, **LENGTHS))
    within = jnp.linspace(1.6, 2.0, 100)
    share = potential.energy(within, **parameters) / lennard_jones().energy(within, **LENGTHS)
    assert bool((jnp.diff(share) <= 0).all())
    # Halfway through the shell the quintic is 1/2.
    middle = potential.energy(1.8, **parameters) / lennard_jones().energy(1.8, **LENGTHS)
    assert float(middle) == pytest.approx(0.5, rel=1e-13)
