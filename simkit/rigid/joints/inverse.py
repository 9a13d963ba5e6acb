"""Generalized inverse of positive semidefinite matrices; redundant rows and columns are dropped."""

import jax
import jax.numpy as jnp


def generalized_inverse(matrix: jax.Array) -> jax.Array:
    """Return a symmetric G with ``A G A = A``, the inverse of A if it has one.

    The sweep operator (Goodnight, American Statistician 33, 149 (1979)): Gauss-Jordan elimination on the diagonal. It
    takes the largest remaining pivot relative to the diagonal of A, and drops redundant rows, whose pivots are
    round-off. ``G b`` then solves ``A x = b`` whenever a solution exists, with zeros for the dropped rows. In another
    order of the pivots a nearly redundant row, at some placement of a closed loop, is kept and magnifies round-off.

    Args:
        matrix: A, symmetric and positive semidefinite, (n, n, ...); further axes count matrices.
    """
    count, dtype = matrix.shape[0], matrix.dtype
    trailing = (1,) * (matrix.ndim - 2)
    places = jnp.arange(count).reshape(count, *trailing)
    on_diagonal = places[:, None] == places
    diagonal = jnp.sum(jnp.where(on_diagonal, matrix, 0), axis=1)
    # Relative pivot that counts as zero: that of a redundant row is round-off, amplified by ill conditioning.
    least = jnp.finfo(dtype).eps ** (2 / 3)

    def sweep(_: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        swept, left = carry
        ratio = jnp.where(left, jnp.sum(jnp.where(on_diagonal, swept, 0), axis=1) / diagonal, -jnp.inf)
        chosen = places == jnp.argmax(ratio, axis=0)
        row = jnp.sum(jnp.where(chosen[:, None], swept, 0), axis=0)
        independent = jnp.max(ratio, axis=0) > least
        pivot = jnp.where(independent, jnp.sum(jnp.where(chosen, row, 0), axis=0), 1)
        row = jnp.where(chosen, -1, row)
        rest = jnp.where(chosen[:, None] | chosen[None, :], 0, swept)
        return rest - jnp.where(independent, row / pivot, 0)[:, None] * row[None, :], left & ~chosen

    left = jnp.ones(diagonal.shape, bool)
    return -jax.lax.fori_loop(0, count, sweep, (matrix, left))[0]


def times_vector(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return ``A b``; further axes of both arrays count matrices and vectors.

    Args:
        matrix: A, (n, m, ...).
        vector: b, (m, ...).
    """
    return jnp.sum(matrix * vector[None], axis=1)
