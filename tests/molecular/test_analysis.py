"""Analysis: bond order, contacts, elastic constants, normal modes and radial distributions."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis.elasticity import elastic_constants, normal_modes, stress_correction
from simkit.molecular.analysis.order import Contacts, highest_peak, radial_distribution, shell_centers
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import lennard_jones, pair_potential, soft_sphere
from tests.molecular.dynamics.moving import floats
from tests.tables import every

bond_order, third_order = (jax.jit(function, static_argnums=1) for function in (order.bond_order, order.third_order))


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
            total = sum(order.wigner_3j(degree, m, -m - m3) ** 2 for m in allowed)
            assert total == pytest.approx(1 / (2 * degree + 1), rel=1e-10)


@every(
    ("call", "message"),
    [
        (lambda flat, solid: bond_order(flat), "3 dimensions, and the particles have 2; use polygon_order"),
        (lambda flat, solid: bond_order(solid, -1), "degree = -1 is not an integer of at least 0"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    flat, solid = bonds(np.zeros((3, 2)), None, 1.0), bonds(np.zeros((3, 3)), None, 1.0)
    with pytest.raises(UserError, match=message):
        call(flat, solid)


def network_of(edges, count):
    network = np.zeros((count, count), dtype=bool)
    for i, j in edges:
        network[i, j] = network[j, i] = True
    return Contacts(jnp.asarray(network), jnp.broadcast_to(jnp.arange(count), (count, count)))


COMPLETE = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_all_links_of_a_chain_on_a_rigid_core_are_rattlers():
    chain = [(3, 4), (4, 5), (5, 6), (6, 7)]
    bearing = order.load_bearing(network_of(COMPLETE + chain, 9), dimension=2)
    np.testing.assert_array_equal(bearing, [True] * 4 + [False] * 5)


def test_contact_number_counts_only_contacts_among_load_bearing_particles():
    network = network_of([*COMPLETE, (3, 4)], 5)
    bearing = order.load_bearing(network, dimension=2)
    assert float(order.contact_number(network, bearing)) == 3.0


def test_without_load_bearing_particles_the_contact_number_is_zero():
    network = network_of([(0, 1), (1, 2)], 3)
    bearing = order.load_bearing(network, dimension=2)
    assert not bool(bearing.any())
    assert float(order.contact_number(network, bearing)) == 0.0


def test_correction_under_pressure_is_the_textbook_one(x64):
    correction = np.asarray(stress_correction(-2.0 * jnp.eye(3)))
    expected = np.diag([-4.0] * 3 + [-2.0] * 3)
    expected[:3, :3] += 2
    np.testing.assert_allclose(correction, expected, atol=1e-15)


def test_free_space_has_no_elastic_constants(x64):
    with pytest.raises(UserError, match="free space has no volume"):
        elastic_constants(pair_interaction(soft_sphere(), cutoff=1.0), jnp.zeros((2, 2)), None, floats(epsilon=1.0))


PARAMS = {"epsilon": 1.3, "sigma": 0.9}
BOND = 2 ** (1 / 6)


def spring(k, length):
    return pair_interaction(
        pair_potential(lambda distance: k / 2 * (distance - length) ** 2), cutoff=None, parameters=()
    )


def test_lennard_jones_diatomic_has_its_closed_form_frequency(x64):
    position = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, BOND * PARAMS["sigma"]]])
    interaction = pair_interaction(lennard_jones(), cutoff=None)
    modes = jax.jit(functools.partial(normal_modes, interaction, cell=None))(position, params=PARAMS, mass=2.0)
    # U'' = 72 epsilon / (2^(1/3) sigma^2), the reduced mass is one.
    stiffness = 72 / 2 ** (1 / 3) * PARAMS["epsilon"] / PARAMS["sigma"] ** 2
    assert float(modes.frequency[-1]) == pytest.approx(np.sqrt(stiffness), rel=1e-8)
    assert int(modes.zero_modes) == 5


distribution = functools.partial(jax.jit, static_argnames="bins")(
    lambda position, cell, reach, bins: radial_distribution(position, cell, reach=reach, bins=bins)
)


def test_shells_beyond_half_the_cell_are_nan(x64):
    position = jax.random.uniform(jax.random.key(3), (20, 3)) * jnp.array([4.0, 5.0, 6.0])
    found = np.asarray(distribution(position, jnp.array([4.0, 5.0, 6.0]), 2.5, 10))
    assert np.isfinite(found[:8]).all()
    assert np.isnan(found[8:]).all()


def test_memory_does_not_grow_with_the_pairs(x64):
    count = 20_000
    lowered = distribution.lower(jnp.zeros((count, 3)), jnp.ones(3), 0.5, 50)
    # A few dozen copies of the positions at most, where the distances of all pairs would be 3.2 GB.
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 40 * count * 3 * 8


def test_its_derivative_is_zero_and_finite(x64):
    position = jax.random.uniform(jax.random.key(4), (10, 2))
    slope = jax.jit(jax.grad(lambda x: radial_distribution(x, jnp.ones(2), reach=0.5, bins=4).sum()))(position)
    assert float(jnp.abs(slope).max()) == 0


def test_peak_is_interpolated_between_the_shells(x64):
    centers = shell_centers(3.0, 60)
    assert centers[0] == pytest.approx(0.025)
    position, height = highest_peak(jnp.asarray(2.5 - 40 * (centers - 1.0912) ** 2), 3.0)
    # A parabola is reproduced exactly.
    assert float(position) == pytest.approx(1.0912, rel=1e-12)
    assert float(height) == pytest.approx(2.5, rel=1e-12)


def test_no_shells_are_refused():
    with pytest.raises(UserError, match="bins = 0 is not an integer of at least 1"):
        radial_distribution(jnp.zeros((2, 2)), jnp.ones(2), reach=0.5, bins=0)
