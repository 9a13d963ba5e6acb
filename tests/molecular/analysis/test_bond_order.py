"""Bond order of crystals and of the icosahedron, against published numbers."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis import order as orders
from simkit.molecular.neighbors import pairs
from tests.tables import every

bond_order, global_bond_order, third_order, hexatic_order = (
    jax.jit(function, static_argnums=1)
    for function in (orders.bond_order, orders.global_bond_order, orders.third_order, orders.hexatic_order)
)


@jax.jit
def bonds(position, cell, cutoff):
    position = jnp.asarray(position, dtype=float)
    return pairs.all_pairs(position, spaces.of_cell(cell, position.shape[1]), jnp.asarray(cutoff, dtype=float))


def icosahedron():
    golden = (1 + math.sqrt(5)) / 2
    corners = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    corners = np.array([np.roll(corner, turn) for corner in corners for turn in range(3)])
    return np.concatenate([np.zeros((1, 3)), corners / math.sqrt(1 + golden**2)])


def disordered(seed=0, count=40):
    return np.random.default_rng(seed).uniform(0, 3, (count, 3))


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
        (lambda flat, solid: bond_order(solid, -1), "degree = -1 is not an integer of at least 0"),
        (lambda flat, solid: hexatic_order(flat, 0), "fold = 0 is not an integer of at least 1"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    flat, solid = bonds(np.zeros((3, 2)), None, 1.0), bonds(np.zeros((3, 3)), None, 1.0)
    with pytest.raises(UserError, match=message):
        call(flat, solid)
