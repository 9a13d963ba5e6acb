"""All pairs of bodies in rounds, as in a tournament: in each round a body has at most one partner.

The pairs of a round share no body, so their impulses can be found at the same time, and a pass over all rounds is
still a Gauss-Seidel sweep over all pairs.
"""

import jax
import jax.numpy as jnp
import numpy as np


def rounds(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both bodies of each pair, (rounds, pairs per round); with an odd number, ``count`` stands for no body.

    The circle method: the first stays, the others move on by one place after each round.

    Args:
        count: number of bodies.
    """
    places = np.arange(count + count % 2)
    first, second = [], []
    for _ in range(len(places) - 1):
        half = len(places) // 2
        first.append(places[:half])
        second.append(places[half:][::-1])
        places = np.concatenate([places[:1], places[-1:], places[1:-1]])
    return np.array(first).reshape(-1, len(places) // 2), np.array(second).reshape(-1, len(places) // 2)


def halves(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return what the pairs of a round have, first and second, of values in the order of the places.

    Args:
        values: an even number along the first axis.
    """
    half = values.shape[0] // 2
    return values[:half], values[half:][::-1]


def joined(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return values in the order of the places from those of the pairs, the inverse of `halves`."""
    return jnp.concatenate([first, second[::-1]])


def moved_on(values: jax.Array) -> jax.Array:
    """Return values in the order of the places of the next round."""
    return jnp.concatenate([values[:1], values[-1:], values[1:-1]])
