"""Geometry of boxes, triclinic cells and free space, of lattices, and of rigid motions."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones
from simkit.molecular.relaxation import relaxation
from simkit.molecular.relaxation.equilibrium import rigid_motions
from simkit.molecular.structures import lattices
from tests.tables import every


@every("box", [(3.0, 5.0), (3.0, 5.0, 4.0)])
def test_displacement_is_the_shortest_over_all_images(x64, box):
    box = np.array(box)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-3, 3, (2, 50, len(box))) * box
    found = np.asarray(spaces.displacement(spaces.periodic(jnp.asarray(box)), a, b))
    # Differences of up to six boxes per axis: seven images either way cover the nearest one.
    shifts = np.stack(np.meshgrid(*[np.arange(-7, 8)] * len(box)), axis=-1).reshape(-1, len(box)) * box
    images = (a - b)[:, None] + shifts
    shortest = np.linalg.norm(images, axis=-1).min(axis=1)
    # Round-off of coordinates of order 20: 20 * 2.2e-16 * a few operations.
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), shortest, rtol=0, atol=2e-14)


def test_wrapped_positions_lie_in_the_box_even_just_below_zero(x64):
    box = jnp.array([3.0, 5.0])
    space = spaces.periodic(box)
    rng = np.random.default_rng(2)
    position = np.concatenate([rng.uniform(-20, 20, (100, 2)), [[-1e-18, -1e-300], [3.0, 5.0], [-3.0, 10.0]]])
    wrapped = space.wrap(jnp.asarray(position))
    assert bool(jnp.all((wrapped >= 0) & (wrapped < box)))
    # One rounding of coordinates of order 20.
    np.testing.assert_allclose(spaces.displacement(space, wrapped, position), 0, atol=1e-14)


SHAPES = {
    "sheared": [[3.0, 0.0, 0.0], [1.4, 3.2, 0.0], [-1.0, 1.2, 3.5]],
    "rotated": [[1.9, 2.2, 0.5], [-2.4, 2.0, 0.3], [0.6, -1.1, 3.3]],
    "left-handed": [[0.0, 3.1, 0.2], [2.9, 0.1, 0.0], [0.3, 0.4, 3.0]],
}


def cell_of(name, dimension):
    return jnp.asarray(SHAPES[name])[:dimension, :dimension]


@every("dimension", [2, 3])
@every("name", SHAPES)
def test_widths_and_volume_follow_from_the_faces(x64, name, dimension):
    cell = np.asarray(cell_of(name, dimension))
    space = spaces.triclinic(jnp.asarray(cell))
    assert float(space.volume) == pytest.approx(abs(np.linalg.det(cell)), rel=1e-14)
    for axis in range(dimension):
        others = np.delete(cell, axis, axis=0)
        face = np.sqrt(np.linalg.det(others @ others.T))
        assert float(space.widths[axis]) == pytest.approx(float(space.volume) / face, rel=1e-13)
    np.testing.assert_allclose(spaces.inverse_of(jnp.asarray(cell)), np.linalg.inv(cell), rtol=0, atol=1e-15)


def test_positions_wrapped_into_a_sheared_cell_lie_inside_it(x64):
    cell = cell_of("sheared", 3)
    space = spaces.triclinic(cell)
    position = jnp.asarray(
        np.concatenate([np.random.default_rng(5).uniform(-20, 20, (100, 3)), -1e-18 * np.ones((1, 3))])
    )
    inside = np.stack(space.fractional(tuple(space.wrap(position).T)))
    # Fractional coordinates round by a few 2.2e-16.
    assert np.all((inside > -1e-15) & (inside < 1))
    np.testing.assert_allclose(spaces.displacement(space, space.wrap(position), position), 0, atol=2e-14)


def test_strain_of_a_cell_is_differentiable(x64):
    cell, a, b = cell_of("sheared", 2), jnp.array([0.2, 0.3]), jnp.array([2.9, 2.8])

    def length(shear):
        strained = cell @ jnp.array([[1.0, 0.0], [shear, 1.0]])
        return jnp.linalg.norm(spaces.displacement(spaces.triclinic(strained), a, b))

    step = 1e-6
    difference = (length(step) - length(-step)) / (2 * step)
    # Round-off 2.2e-16 / 1e-6.
    assert float(jax.jit(jax.grad(length))(0.0)) == pytest.approx(float(difference), abs=1e-9)


def test_free_space_has_no_images(x64):
    space = spaces.of_cell(None, 3)
    a, b = jnp.array([1e9, 0.0, 0.0]), jnp.array([-1e9, 1.0, 0.0])
    np.testing.assert_array_equal(spaces.displacement(space, a, b), a - b)
    np.testing.assert_array_equal(space.wrap(a), a)
    assert not space.is_periodic
    assert bool(jnp.isinf(space.volume))


@every(
    ("make", "message"),
    [
        (lambda: spaces.free(4), "is not an integer from 2 to 3"),
        (lambda: spaces.periodic(jnp.ones(4)), "2 or 3 side lengths"),
        (lambda: spaces.triclinic(jnp.ones((2, 3))), "lattice vectors as rows"),
        (lambda: spaces.of_cell(jnp.ones(3), 2), "in 2 dimensions"),
    ],
)
def test_invalid_geometries_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


@every("name", SHAPES)
def test_a_lattice_sheared_by_its_own_vectors_is_reduced_to_the_widths_it_had(x64, name):
    for dimension in (2, 3):
        cell = np.asarray(cell_of(name, dimension))
        best = cell if dimension == 2 else spaces.reduction(cell) @ cell
        for shear in (
            [[1, 0, 0], [7, 1, 0], [0, 0, 1]],
            [[1, 0, 0], [-2, 1, 0], [5, -3, 1]],
            [[2, 1, 0], [1, 1, 0], [4, 1, 1]],
        ):
            sheared = np.array(shear)[:dimension, :dimension] @ best
            integers = spaces.reduction(sheared)
            assert abs(np.linalg.det(integers)) == pytest.approx(1)
            widths = [float(spaces.triclinic(jnp.asarray(each)).widths.min()) for each in (integers @ sheared, best)]
            assert widths[0] == pytest.approx(widths[1], rel=1e-12)
        assert (spaces.reduction(best) == np.eye(dimension)).all()


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


def test_the_axial_ratio_moves_only_the_layers(x64):
    flat = lattices.hexagonal_close_packed((2, 2, 2), ratio=1.5)
    ideal = lattices.hexagonal_close_packed((2, 2, 2))
    np.testing.assert_array_equal(flat.position[:, :2], ideal.position[:, :2])
    np.testing.assert_allclose(flat.position[:, 2] * math.sqrt(8 / 3) / 1.5, ideal.position[:, 2], atol=1e-14)


def test_positions_and_cell_scale_with_a_traced_spacing(x64):
    lattice, slope = jax.jvp(lambda a: lattices.diamond((1, 1, 1), spacing=a), (2.0,), (1.0,))
    np.testing.assert_allclose(slope.position, lattice.position / 2, rtol=1e-15)
    np.testing.assert_allclose(slope.cell, lattice.cell / 2, rtol=1e-15)


@every("repeats", [(2, 2), (2, 2, 0), (2, 2, 1.5)])
def test_repeats_that_make_no_crystal_are_refused(repeats):
    with pytest.raises(UserError, match="repeats"):
        lattices.face_centered_cubic(repeats)


def test_a_linear_molecule_has_one_rotation_less(x64):
    position = jnp.arange(4.0)[:, None] * jnp.array([1.0, 2.0, -1.0])
    norms = np.sort(jnp.sum(rigid_motions(position, rotations=True, length=1.0).displacement ** 2, axis=(1, 2)))
    assert norms[0] == 0.0
    # Normalized to a rounding each.
    np.testing.assert_allclose(norms[1:], 1, atol=1e-14)


def test_impossible_requests_are_refused():
    params = {"sigma": jnp.asarray(1.0)}
    interaction = pair_interaction(lennard_jones(), cutoff=None, method="all_pairs")

    def make(**changes):
        return relaxation(interaction, None, params=params, scale=None, **changes)

    with pytest.raises(UserError, match="force_tolerance = 0 is not above 0"):
        make(force_tolerance=0.0)
    with pytest.raises(UserError, match="needs a cell"):
        make(relax_cell=True)
    with pytest.raises(UserError, match="parameter pressure"):
        make(relax_cell=True, cell=lambda params: jnp.ones(2))
    with pytest.raises(UserError, match="unknown minimizer"):
        make(minimizer="newton")
    assert minimizers.by_name("fire").patience > 0
