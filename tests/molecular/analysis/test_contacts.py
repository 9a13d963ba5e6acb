"""Contact network: contacts, rattlers and contact number."""

import jax.numpy as jnp
import numpy as np

from simkit.molecular.analysis import order
from simkit.molecular.analysis.order import Contacts


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
