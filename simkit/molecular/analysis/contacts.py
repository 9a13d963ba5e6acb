"""The contact network of a packing: which particles touch, and which carry no load."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.neighbors.pairs import Pairs

# Each sweep peels one layer of rattlers; jammed packings need two or three.
RATTLER_SWEEPS = 32


class Contacts(NamedTuple):
    """The contacts, each listed from both its ends.

    Attributes:
        touching: whether the entry is a contact, (N, K) booleans.
        partner: the particle at the other end, (N, K) integers.
    """

    touching: jax.Array
    partner: jax.Array


def contact_network(pairs: Pairs, sigma: jax.Array) -> Contacts:
    """Return the pairs that overlap.

    Args:
        pairs: from `simkit.molecular.neighbors.pairs`, of all particles or of those on a list.
        sigma: distance at which a pair touches, scalar or (N, K).
    """
    return Contacts(pairs.is_pair & (pairs.distance < sigma), pairs.partner)


def load_bearing(network: Contacts, dimension: int) -> jax.Array:
    """Return the particles that are held in place by the others.

    Fewer than ``d + 1`` contacts cannot hold a frictionless particle; removing such a rattler may free its neighbors,
    so the removal is repeated.

    Args:
        network: the contacts.
        dimension: d.

    Returns:
        Booleans, (N,); false for rattlers.
    """

    def peel(_: int, bearing: jax.Array) -> jax.Array:
        return bearing & ((network.touching & bearing[network.partner]).sum(axis=1) > dimension)

    return jax.lax.fori_loop(0, RATTLER_SWEEPS, peel, jnp.ones(len(network.touching), dtype=bool))


def contact_number(network: Contacts, bearing: jax.Array) -> jax.Array:
    """Return the mean number of contacts of a load-bearing particle with other load-bearing ones, Z.

    Args:
        network: the contacts.
        bearing: from `load_bearing`, (N,).

    Returns:
        Scalar; zero if no particle bears load.
    """
    contacts = (network.touching & bearing[:, None] & bearing[network.partner]).sum()
    return jnp.where(bearing.any(), contacts / jnp.maximum(bearing.sum(), 1), 0)
