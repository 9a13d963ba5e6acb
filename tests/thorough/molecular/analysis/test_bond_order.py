"""Bond order of crystals and of the icosahedron, against published numbers."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.structures import lattices
from tests.molecular.analysis.test_bond_order import (
    bond_order,
    bonds,
    disordered,
    global_bond_order,
    hexatic_order,
    icosahedron,
    third_order,
)
from tests.tables import every


def cubic(sites, repeats=4):
    """Return a cubic crystal of unit cells of side 1 with the given sites."""
    corners = np.array(list(itertools.product(range(repeats), repeat=3)), dtype=float)
    return (corners[:, None] + np.array(sites)).reshape(-1, 3), jnp.full(3, float(repeats))


def crystals():
    simple, body = cubic([(0, 0, 0)]), cubic([(0, 0, 0), (0.5, 0.5, 0.5)])
    cubes, hexagons = lattices.face_centered_cubic((3, 3, 3)), lattices.hexagonal_close_packed((4, 3, 3))
    # The second shell of the body-centered lattice is at 1, the first at 0.866.
    return {
        "face_centered_cubic": (cubes.position, cubes.cell, 1.2),
        "hexagonal_close_packed": (hexagons.position, hexagons.cell, 1.2),
        "body_centered_cubic_8": (*body, 0.93),
        "body_centered_cubic_14": (*body, 1.2),
        "simple_cubic": (*simple, 1.2),
    }


# Steinhardt, Nelson, Ronchetti 1983; Mickel et al., J. Chem. Phys. 138, 044501 (2013). Five digits each.
PUBLISHED = {
    "face_centered_cubic": (12, 0.19094, 0.57452, -0.15932, -0.01316),
    "hexagonal_close_packed": (12, 0.09722, 0.48476, 0.13410, -0.01244),
    "body_centered_cubic_8": (8, 0.50918, 0.62854, -0.15932, 0.01316),
    "body_centered_cubic_14": (14, 0.03637, 0.51069, 0.15932, 0.01316),
    "simple_cubic": (6, 0.76376, 0.35355, 0.15932, 0.01316),
}


@every("name", ["face_centered_cubic", "simple_cubic"])
def test_global_order_of_a_perfect_crystal_is_that_of_its_particles(x64, name):
    found = bonds(*crystals()[name])
    assert float(global_bond_order(found, 4)) == pytest.approx(PUBLISHED[name][1], abs=5.1e-6)
    assert float(global_bond_order(found, 6)) == pytest.approx(PUBLISHED[name][2], abs=5.1e-6)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_particle_of_a_crystal_has_the_published_bond_order(x64, name):
    found = bonds(*crystals()[name])
    count, q4, q6, w4, w6 = PUBLISHED[name]
    np.testing.assert_array_equal(found.is_pair.sum(axis=1), count)
    # Half of the last digit.
    np.testing.assert_allclose(bond_order(found, 4), q4, atol=5.1e-6)
    np.testing.assert_allclose(bond_order(found, 6), q6, atol=5.1e-6)
    np.testing.assert_allclose(third_order(found, 4), w4, atol=5.1e-6)
    np.testing.assert_allclose(third_order(found, 6), w6, atol=5.1e-6)


def rotation(seed=1):
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return matrix * np.sign(np.linalg.det(matrix))


def test_bond_order_does_not_change_under_rotation_and_permutation(x64):
    position = disordered()
    order = np.random.default_rng(2).permutation(len(position))
    before, after = bonds(position, None, 1.0), bonds((position @ rotation().T)[order], None, 1.0)
    for degree in (5, 6):
        # Sums of a dozen numbers of order one, in another order.
        np.testing.assert_allclose(bond_order(after, degree), bond_order(before, degree)[order], atol=1e-13)
        assert float(global_bond_order(after, degree)) == pytest.approx(
            float(global_bond_order(before, degree)), abs=1e-13
        )
    np.testing.assert_allclose(third_order(after, 6), third_order(before, 6)[order], atol=1e-12)


def test_derivative_of_bond_order_equals_central_differences_also_along_the_axis_of_the_angles(x64):
    def total(position):
        return jnp.sum(jnp.arange(13.0) * bond_order(bonds(position, None, 1.3), 6)) + global_bond_order(
            bonds(position, None, 1.3), 4
        )

    # A spoke along z, where angles have no derivative; shaken, so that nothing is stationary.
    position = jnp.asarray(icosahedron()) + 0.03 * jnp.asarray(np.random.default_rng(3).normal(size=(13, 3)))
    position = position.at[0].set(0.0).at[1].set(jnp.array([0.0, 0.0, 1.0]))
    direction = jnp.asarray(np.random.default_rng(4).normal(size=(13, 3)))
    step = 1e-5
    value, slope = jax.jit(total), jax.jit(jax.grad(total))
    difference = (value(position + step * direction) - value(position - step * direction)) / (2 * step)
    derivative = jnp.sum(slope(position) * direction)
    assert abs(float(difference)) > 0.1
    # Truncation (1e-5)^2 times a third derivative of some 100, round-off 1e-15 / 1e-5.
    assert float(derivative) == pytest.approx(float(difference), rel=1e-6)


def test_particles_without_bonds_have_no_order_and_a_derivative_of_zero(x64):
    position = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [5.0, 0.0, 0.0]])
    found = bonds(position, None, 1.2)
    for measure in (bond_order, third_order):
        assert float(measure(found, 6)[2]) == 0
        slope = jax.jit(jax.grad(lambda x, measure=measure: measure(bonds(x, None, 1.2), 6)[2]))(position)
        np.testing.assert_array_equal(slope, 0)
    # One bond: |q_lm|^2 sums to (2 l + 1) / 4 pi.
    np.testing.assert_allclose(bond_order(found, 6)[:2], 1, rtol=1e-14)


def test_lattices_in_the_plane_have_perfect_order_of_their_own_fold(x64):
    triangles, squares = lattices.triangular((6, 4)), lattices.square((6, 6))
    angle = 0.1
    turn = jnp.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    for lattice, fold, other in ((triangles, 6, 4), (squares, 4, 6)):
        found = bonds(lattice.position @ turn, lattice.cell @ turn, 1.2)
        real, imaginary = hexatic_order(found, fold)
        # Turned by an angle, the lattice has the phase of k times that angle.
        np.testing.assert_allclose(real, math.cos(fold * angle), atol=1e-13)
        np.testing.assert_allclose(imaginary, math.sin(fold * angle), atol=1e-13)
        np.testing.assert_allclose(jnp.hypot(*hexatic_order(found, other)), 0, atol=1e-13)


def test_center_of_an_icosahedron_has_the_published_bond_order(x64):
    # Edges are 1.05 times as long as spokes; the cut-off leaves both in.
    found = bonds(icosahedron(), None, 1.2)
    assert int(found.is_pair[0].sum()) == 12
    assert float(bond_order(found, 6)[0]) == pytest.approx(0.66332, abs=5.1e-6)
    assert float(third_order(found, 6)[0]) == pytest.approx(-0.16975, abs=5.1e-6)
    # The lowest invariant of the icosahedral group has degree 6: zero to round-off.
    assert float(bond_order(found, 4)[0]) < 1e-12


def test_bond_order_equals_the_sum_of_legendre_polynomials_of_all_angles(x64):
    position, cutoff = disordered(), 1.0
    found = bonds(position, None, cutoff)
    for degree in (0, 1, 6):
        legendre = np.polynomial.legendre.Legendre.basis(degree)
        expected = []
        for i in range(len(position)):
            arms = np.delete(position, i, axis=0) - position[i]
            distance = np.linalg.norm(arms, axis=1)
            arms = arms[distance < cutoff] / distance[distance < cutoff, None]
            # Addition theorem: (4 pi / (2 l + 1)) sum_m Y_lm(a) Y_lm(b)* = P_l(a . b).
            expected.append(np.sqrt(max(legendre(arms @ arms.T).mean(), 0)) if len(arms) else 0.0)
        # The root of round-off, where Q is small.
        np.testing.assert_allclose(bond_order(found, degree), expected, atol=1e-7)
