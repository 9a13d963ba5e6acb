"""The contact network of a packing: who touches whom, and which particles carry no load."""

import jax
import jax.numpy as jnp

from simkit.molecular.pairs import Pairs

# Each sweep peels one layer of rattlers; jammed packings need two or three.
RATTLER_SWEEPS = 32


def contact_network(pairs: Pairs, sigma: jax.Array) -> jax.Array:
    """Tell which pairs overlap.

    Args:
        pairs: from `simkit.molecular.pairs.all_pairs`.
        sigma: distance at which a pair touches, scalar or (N, N).

    Returns:
        Booleans, (N, N).
    """
    return pairs.is_pair & (pairs.distance < sigma)


def load_bearing(network: jax.Array, dimension: int) -> jax.Array:
    """Tell which particles are held in place by the others.

    Fewer than ``d + 1`` contacts cannot hold a frictionless particle; removing such a rattler may free its neighbors,
    so the removal is repeated.

    Args:
        network: contacts of all pairs, (N, N) booleans.
        dimension: d.

    Returns:
        Booleans, (N,); false for rattlers.
    """

    def peel(_: int, bearing: jax.Array) -> jax.Array:
        return bearing & ((network & bearing).sum(axis=1) > dimension)

    return jax.lax.fori_loop(0, RATTLER_SWEEPS, peel, jnp.ones(len(network), dtype=bool))


def contact_number(network: jax.Array, bearing: jax.Array) -> jax.Array:
    """Return the mean number of contacts of a load-bearing particle with other load-bearing ones, Z.

    Args:
        network: contacts of all pairs, (N, N) booleans.
        bearing: from `load_bearing`, (N,).

    Returns:
        Scalar; zero where nothing bears load.
    """
    contacts = (network & bearing[:, None] & bearing[None, :]).sum()
    return jnp.where(bearing.any(), contacts / jnp.maximum(bearing.sum(), 1), 0)
