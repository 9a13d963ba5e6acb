"""Crystal lattices: neighbors, distances and densities."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.structures import lattices
from tests.tables import every

# Name, repeats (every edge longer than four spacings), particles per unit cell, volume per particle in units of
# spacing^d, then the first shells as (distance / spacing, neighbors).
CRYSTALS = [
    ("square", (5, 6), 1, 1.0, [(1, 4), (math.sqrt(2), 4), (2, 4)]),
    ("triangular", (6, 4), 2, math.sqrt(3) / 2, [(1, 6), (math.sqrt(3), 6), (2, 6)]),
    ("honeycomb", (4, 2), 4, 3 * math.sqrt(3) / 4, [(1, 3), (math.sqrt(3), 6), (2, 3)]),
    ("face_centered_cubic", (4, 4, 4), 4, 1 / math.sqrt(2), [(1, 12), (math.sqrt(2), 6), (math.sqrt(3), 24)]),
    ("hexagonal_close_packed", (5, 3, 3), 4, 1 / math.sqrt(2), [(1, 12), (math.sqrt(2), 6), (math.sqrt(8 / 3), 2)]),
    ("diamond", (3, 3, 2), 8, 8 / (3 * math.sqrt(3)), [(1, 4), (math.sqrt(8 / 3), 12), (math.sqrt(11 / 3), 12)]),
]


def all_distances(lattice):
    """Return the distances of all pairs by the nearest image; exact up to half the shortest edge."""
    edges = np.diag(lattice.cell)
    apart = np.asarray(lattice.position)[:, None] - np.asarray(lattice.position)[None]
    apart -= edges * np.round(apart / edges)
    return np.linalg.norm(apart, axis=-1)


@every(("name", "repeats", "sites", "volume", "shells"), CRYSTALS, ids=[c[0] for c in CRYSTALS])
def test_every_particle_has_the_shells_and_density_of_its_crystal(x64, name, repeats, sites, volume, shells):
    spacing = 1.7
    lattice = getattr(lattices, name)(repeats, spacing=spacing)
    count = sites * math.prod(repeats)
    assert lattice.position.shape == (count, len(repeats))
    # Round-off: a handful of products of numbers of order ten.
    assert float(jnp.linalg.det(lattice.cell)) == pytest.approx(count * volume * spacing ** len(repeats), rel=1e-13)
    distances = np.sort(all_distances(lattice), axis=1)
    expected = np.concatenate([[0.0], *([spacing * r] * n for r, n in shells)])
    np.testing.assert_allclose(distances[:, : len(expected)], np.tile(expected, (count, 1)), atol=1e-13)
    # The last shell is complete: the next particle is further away, by 5 % of the spacing at least in all of these.
    assert (distances[:, len(expected)] > expected[-1] + 0.05 * spacing).all()


def test_crystals_differ_in_stacking_only_beyond_the_second_shell(x64):
    cubic = np.sort(all_distances(lattices.face_centered_cubic((4, 4, 4))), axis=1)[0]
    hexagonal = np.sort(all_distances(lattices.hexagonal_close_packed((5, 3, 3))), axis=1)[0]
    np.testing.assert_allclose(cubic[:19], hexagonal[:19], atol=1e-13)
    assert abs(cubic[19] - hexagonal[19]) > 0.09


def test_the_axial_ratio_moves_only_the_layers(x64):
    flat = lattices.hexagonal_close_packed((2, 2, 2), ratio=1.5)
    ideal = lattices.hexagonal_close_packed((2, 2, 2))
    np.testing.assert_array_equal(flat.position[:, :2], ideal.position[:, :2])
    np.testing.assert_allclose(flat.position[:, 2] * math.sqrt(8 / 3) / 1.5, ideal.position[:, 2], atol=1e-14)


def test_positions_and_cell_scale_with_a_traced_spacing(x64):
    lattice, slope = jax.jvp(lambda a: lattices.diamond((1, 1, 1), spacing=a), (2.0,), (1.0,))
    np.testing.assert_allclose(slope.position, lattice.position / 2, rtol=1e-15)
    np.testing.assert_allclose(slope.cell, lattice.cell / 2, rtol=1e-15)


def test_precision_follows_the_setting():
    for name, repeats, *_ in CRYSTALS:
        assert getattr(lattices, name)(repeats).position.dtype == jnp.float32
        with jax.enable_x64(True):
            lattice = getattr(lattices, name)(repeats)
            assert lattice.position.dtype == lattice.cell.dtype == jnp.float64


@every("repeats", [(2, 2), (2, 2, 0), (2, 2, 1.5)])
def test_repeats_that_make_no_crystal_are_refused(repeats):
    with pytest.raises(UserError, match="repeats"):
        lattices.face_centered_cubic(repeats)
