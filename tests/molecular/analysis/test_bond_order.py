"""Bond order of crystals and of the icosahedron, against published numbers."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis import bond_order as orders
from simkit.molecular.neighbors import pairs
from simkit.molecular.structures import lattices
from tests.every import every

bond_order, global_bond_order, third_order, hexatic_order = (
    jax.jit(function, static_argnums=1)
    for function in (orders.bond_order, orders.global_bond_order, orders.third_order, orders.hexatic_order)
)


@jax.jit
def bonds(position, cell, cutoff):
    position = jnp.asarray(position, dtype=float)
    return pairs.all_pairs(position, spaces.of_cell(cell, position.shape[1]), jnp.asarray(cutoff, dtype=float))


def cubic(sites, repeats=4):
    """Return a cubic crystal of unit cells of side 1 with the given sites."""
    corners = np.array(list(itertools.product(range(repeats), repeat=3)), dtype=float)
    return (corners[:, None] + np.array(sites)).reshape(-1, 3), jnp.full(3, float(repeats))


def icosahedron():
    golden = (1 + math.sqrt(5)) / 2
    corners = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    corners = np.array([np.roll(corner, turn) for corner in corners for turn in range(3)])
    return np.concatenate([np.zeros((1, 3)), corners / math.sqrt(1 + golden**2)])


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


def test_center_of_an_icosahedron_has_the_published_bond_order(x64):
    # Edges are 1.05 times as long as spokes; the cut-off leaves both in.
    found = bonds(icosahedron(), None, 1.2)
    assert int(found.is_pair[0].sum()) == 12
    assert float(bond_order(found, 6)[0]) == pytest.approx(0.66332, abs=5.1e-6)
    assert float(third_order(found, 6)[0]) == pytest.approx(-0.16975, abs=5.1e-6)
    # The lowest invariant of the icosahedral group has degree 6: zero to round-off.
    assert float(bond_order(found, 4)[0]) < 1e-12


def disordered(seed=0, count=40):
    return np.random.default_rng(seed).uniform(0, 3, (count, 3))


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


def test_wigner_symbols_are_orthonormal():
    for degree in (2, 4, 6):
        for m3 in range(-degree, degree + 1):
            allowed = [m for m in range(-degree, degree + 1) if abs(m + m3) <= degree]
            # sum over m1 of (l l l; m1 m2 m3)^2 = 1 / (2 l + 1), to the round-off of an alternating sum.
            total = sum(orders.wigner_3j(degree, m, -m - m3) ** 2 for m in allowed)
            assert total == pytest.approx(1 / (2 * degree + 1), rel=1e-10)


@every(
    ("call", "message"),
    [
        (lambda flat, solid: bond_order(flat), "3 dimensions, and the particles have 2; use hexatic_order"),
        (lambda flat, solid: hexatic_order(solid), "2 dimensions, and the particles have 3; use bond_order"),
        (lambda flat, solid: bond_order(solid, -1), "degree = -1 is negative"),
        (lambda flat, solid: hexatic_order(flat, 0), "fold = 0 is below 1"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    flat, solid = bonds(np.zeros((3, 2)), None, 1.0), bonds(np.zeros((3, 3)), None, 1.0)
    with pytest.raises(UserError, match=message):
        call(flat, solid)
