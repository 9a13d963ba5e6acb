"""Contact network: contacts, rattlers and contact number."""

import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis.order import Contacts
from simkit.molecular.neighbors import pairs


def network_of(edges, count):
    network = np.zeros((count, count), dtype=bool)
    for i, j in edges:
        network[i, j] = network[j, i] = True
    return Contacts(jnp.asarray(network), jnp.broadcast_to(jnp.arange(count), (count, count)))


COMPLETE = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_contacts_are_pairs_that_overlap_and_never_a_particle_with_itself():
    position = jnp.array([[0.1, 1.0], [0.9, 1.0], [2.0, 1.0], [3.8, 1.0]])
    apart = pairs.all_pairs(position, spaces.periodic(jnp.array([4.0, 4.0])))
    # Distances along the periodic line: 0.8, 1.1, 1.8, and 0.3 across the boundary.
    expected = network_of([(0, 1), (0, 3)], 4)
    np.testing.assert_array_equal(order.contact_network(apart, 1.0).touching, expected.touching)


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
