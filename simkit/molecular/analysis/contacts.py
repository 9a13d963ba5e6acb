"""Contact network of a packing: contacts, rattlers and contact number."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.neighbors.pairs import Pairs

# Each sweep removes one layer of rattlers; jammed packings need two or three.
RATTLER_SWEEPS = 32


class Contacts(NamedTuple):
    """The contacts, each listed at both particles.

    Attributes:
        touching: whether the entry is a contact, (N, K) booleans.
        partner: index of the other particle, int32, (N, K).
    """

    touching: jax.Array
    partner: jax.Array


def contact_network(pairs: Pairs, sigma: jax.Array) -> Contacts:
    """Return the pairs that overlap.

    Args:
        pairs: from `simkit.molecular.neighbors.pairs`, all or listed ones.
        sigma: contact distance of a pair, scalar or (N, K).
    """
    return Contacts(pairs.is_pair & (pairs.distance < sigma), pairs.partner)


def load_bearing(network: Contacts, dimension: int) -> jax.Array:
    """Return the mask of load-bearing particles, all but rattlers.

    Fewer than ``d + 1`` contacts cannot hold a frictionless particle; without such a rattler its neighbors may be
    rattlers too, so the test is repeated.

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
    """Return the contact number Z, the mean number of contacts between load-bearing particles.

    Args:
        network: the contacts.
        bearing: from `load_bearing`, (N,).

    Returns:
        Scalar; zero if no particle bears load.
    """
    contacts = (network.touching & bearing[:, None] & bearing[network.partner]).sum()
    return jnp.where(bearing.any(), contacts / jnp.maximum(bearing.sum(), 1), 0)
