"""Contact network: contacts, rattlers and contact number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis import order as contacts
from simkit.molecular.analysis.order import polygon_order
from simkit.molecular.neighbors import neighbor_list, pairs
from tests.molecular.analysis.test_contacts import network_of


@pytest.mark.parametrize("dimension", [2, 3])
def test_contacts_of_a_list_are_those_of_all_pairs(x64, dimension):
    cell = jnp.full(dimension, {2: 7.0, 3: 3.2}[dimension])
    position = jax.random.uniform(jax.random.key(0), (60, dimension)) * cell
    space = spaces.of_cell(cell, dimension)
    everyone = pairs.all_pairs(position, space)
    listed = pairs.listed_pairs(position, space, neighbor_list.build(position, cell, 1.2, 60))
    networks = [contacts.contact_network(apart, 1.0) for apart in (everyone, listed)]
    counts = [network.touching.sum(axis=1) for network in networks]
    assert int(counts[0].max()) > dimension + 1
    np.testing.assert_array_equal(*counts)
    bearing = [contacts.load_bearing(network, dimension) for network in networks]
    assert 0 < int(bearing[0].sum()) < 60
    np.testing.assert_array_equal(*bearing)
    numbers = [float(contacts.contact_number(*both)) for both in zip(networks, bearing, strict=True)]
    assert numbers[0] == numbers[1]
    # Contacts in another order: separations are the same to the last bit.
    lengths = [
        jnp.sort(jnp.where(network.touching, apart.distance, 0).ravel())[-100:]
        for network, apart in zip(networks, (everyone, listed), strict=True)
    ]
    np.testing.assert_array_equal(*lengths)


def test_hexatic_order_is_one_in_a_triangular_crystal_of_any_direction_and_zero_in_a_square_one(x64):
    angle = 0.3
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    around = np.arange(6) * np.pi / 3
    hexagon = np.concatenate([np.zeros((1, 2)), np.stack([np.cos(around), np.sin(around)], -1)]) @ turn

    def order(position):
        apart = pairs.all_pairs(jnp.asarray(position), spaces.free(2))
        return polygon_order(apart, contacts.contact_network(apart, 1.001).touching, 6)[0]

    # Sums of six unit vectors.
    assert float(order(hexagon)) == pytest.approx(1, abs=1e-14)
    # Corners missing: the rest still agree, and the missing ones count as zero.
    assert float(order(hexagon[:5])) == pytest.approx(4 / 6, abs=1e-14)
    # exp(6 i theta) is 1, -1, 1, -1 along the sides of a square.
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]) @ turn
    assert float(order(square)) == pytest.approx(0, abs=1e-14)
    assert float(order(hexagon[:1])) == 0.0


def test_contacts_are_pairs_that_overlap_and_never_a_particle_with_itself():
    position = jnp.array([[0.1, 1.0], [0.9, 1.0], [2.0, 1.0], [3.8, 1.0]])
    apart = pairs.all_pairs(position, spaces.periodic(jnp.array([4.0, 4.0])))
    # Distances along the periodic line: 0.8, 1.1, 1.8, and 0.3 across the boundary.
    expected = network_of([(0, 1), (0, 3)], 4)
    np.testing.assert_array_equal(order.contact_network(apart, 1.0).touching, expected.touching)
