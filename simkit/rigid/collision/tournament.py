"""Schedule of all pairs of bodies in rounds of a tournament: in each round a body has at most one partner.

The pairs of a round share no body, so their impulses are computed at the same time, and a pass over all rounds is
still a Gauss-Seidel sweep over all pairs.
"""

import jax
import jax.numpy as jnp
import numpy as np


def rounds(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of both bodies of each pair, (rounds, pairs per round); ``count`` marks a missing partner.

    The circle method: the first body stays, the others shift cyclically by one after each round.

    Args:
        count: number of bodies.
    """
    order = np.arange(count + count % 2)
    half = len(order) // 2
    first, second = [], []
    for _ in range(len(order) - 1):
        first.append(order[:half])
        second.append(order[half:][::-1])
        order = np.concatenate([order[:1], order[-1:], order[1:-1]])
    return np.array(first).reshape(-1, half), np.array(second).reshape(-1, half)


def sums_of_bodies(values: jax.Array, body: np.ndarray, count: int) -> jax.Array:
    """Return the sum of the values that belong to each body, (bodies, ...), by reading each value once.

    Additions at indices that repeat have no definite order on accelerators.

    Args:
        values: (m, ...).
        body: index of the body of each value, (m,); values at the index ``count`` are left out.
        count: number of bodies.
    """
    parts = [np.flatnonzero(body == index) for index in range(count)]
    most = max(map(len, parts))
    places = np.stack([np.append(part, np.full(most - len(part), len(body))) for part in parts])
    # Of all pairs in rounds every body has equally many.
    mode = "promise_in_bounds" if min(map(len, parts)) == most else "fill"
    return jnp.sum(values.at[places].get(mode=mode, fill_value=0, unique_indices=True), axis=1)


def split_pairs(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the values of the first and of the second bodies of the pairs of a round.

    Args:
        values: (bodies, ...), an even number of bodies in the order of the round.
    """
    half = values.shape[0] // 2
    return values[:half], values[half:][::-1]


def join_pairs(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return values of bodies in the order of the round from those of its pairs, the inverse of `split_pairs`."""
    return jnp.concatenate([first, second[::-1]])


def next_round(values: jax.Array) -> jax.Array:
    """Return values of bodies in the order of the next round."""
    return jnp.concatenate([values[:1], values[-1:], values[1:-1]])
