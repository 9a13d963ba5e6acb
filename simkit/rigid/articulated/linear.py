"""Small dense linear algebra with members along trailing axes, each operation one over all members.

On a CPU a sum of products over an axis of up to `UNROLLED` entries is written out: XLA then vectorizes over the
members; a reduction over that axis runs through it one number at a time, 13 times slower for 23 x 23 and 128 members.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once_on_cpu, precise_product

# Longest sum that is written out, term by term, and largest matrix that is factored row by row, which takes 3 s to
# compile at 23 rows and grows with their square.
UNROLLED, FACTORED = 64, 40


def applied(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return the product of a matrix (m, n, ...) with a vector (n, ...)."""
    if vector.ndim == 1:
        return precise_product(matrix, vector)
    if len(vector) > UNROLLED:
        return jnp.sum(matrix * vector[None], axis=1)
    return _summed([matrix[:, n] * vector[n] for n in range(len(vector))], matrix[:, :0], 1)


def applied_transposed(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return the product of the transpose of a matrix (m, n, ...) with a vector (m, ...)."""
    if vector.ndim == 1:
        return precise_product(matrix.T, vector)
    if len(vector) > UNROLLED:
        return jnp.sum(matrix * vector[:, None], axis=0)
    return _summed([matrix[m] * vector[m] for m in range(len(vector))], matrix[:0], 0)


def gram(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return ``left^T right`` of (m, n, ...) each, (n, n, ...)."""
    if left.ndim == 2:
        return precise_product(left.T, right)
    if len(left) > UNROLLED:
        return jnp.einsum("ri...,rj...->ij...", left, right, precision="highest")
    return _summed(
        [a[:, None] * b[None] for a, b in zip(left, right, strict=True)], left[:0, :, None] * right[:0, None], 0
    )


def _summed(terms: list[jax.Array], none: jax.Array, axis: int) -> jax.Array:
    """Return a sum of arrays; of none of them, that of an empty array along an axis."""
    return functools.reduce(jnp.add, terms) if terms else jnp.sum(none, axis)


def total(values: jax.Array) -> jax.Array:
    """Return the sum of rows (n, ...), (...)."""
    if values.ndim == 1 or not 0 < len(values) <= UNROLLED:
        return jnp.sum(values, axis=0)
    return functools.reduce(jnp.add, list(values))


def largest(values: jax.Array) -> jax.Array:
    """Return the largest of rows (n, ...) of numbers that are at least zero, (...)."""
    if values.ndim == 1 or not 0 < len(values) <= UNROLLED:
        return jnp.max(values, axis=0, initial=0)
    return functools.reduce(jnp.maximum, list(values))


def solve(matrix: jax.Array, values: jax.Array, *, is_symmetric: bool = True) -> jax.Array:
    """Return ``matrix^-1 values``, by elimination without pivots.

    Without members LAPACK compiles faster. Derivatives are those of the solution, by further solves.

    Args:
        matrix: (n, n, ...); symmetric and positive definite, unless said otherwise.
        values: (n, ...).
        is_symmetric: False only where no derivative is taken.
    """
    if not is_symmetric:
        return jnp.linalg.solve(matrix, values) if values.ndim == 1 else _eliminated(matrix, values, False)

    def factored(_: Any, values: jax.Array) -> jax.Array:
        if values.ndim > 1:
            return _eliminated(matrix, values, True)
        factor = jnp.linalg.cholesky(matrix)
        half = jax.lax.linalg.triangular_solve(factor, values[:, None], left_side=True, lower=True)
        return jax.lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[:, 0]

    return jax.lax.custom_linear_solve(lambda x: applied(matrix, x), values, factored, symmetric=True)


def solve_by(inverse: jax.Array, matrix: jax.Array, values: jax.Array) -> jax.Array:
    """Return ``matrix^-1 values`` of a symmetric matrix by its inverse, whose own derivative is not taken.

    Args:
        inverse: of the matrix, (n, n, ...).
        matrix: (n, n, ...).
        values: (n, ...).
    """
    known, fixed = jax.lax.stop_gradient((inverse, matrix))
    return jax.lax.custom_linear_solve(
        lambda x: applied(matrix, x), values, lambda _, b: refined(known, fixed, b), symmetric=True
    )


def refined(inverse: jax.Array, matrix: jax.Array, values: jax.Array) -> jax.Array:
    """Return the product of a computed inverse with values, corrected once by what it leaves: by rounding alone.

    Args:
        inverse: of the matrix, (n, n, ...).
        matrix: (n, n, ...).
        values: (n, ...).
    """
    first = computed_once_on_cpu(applied(inverse, values))
    return first + applied(inverse, computed_once_on_cpu(values - applied(matrix, first)))


def _eliminated(matrix: jax.Array, values: jax.Array, is_symmetric: bool) -> jax.Array:
    """Return the solution by a factorization that computes each row, bordered by the values, from those before."""
    if len(values) > FACTORED:
        return applied(inverse(matrix), values)
    uppers: list[jax.Array] = []
    lowers: list[jax.Array] = []
    pivots: list[jax.Array] = []
    for n in range(len(values)):
        row = jnp.concatenate([matrix[n, n:], values[n][None]])
        for m in range(n):
            share = uppers[m][n - m] * pivots[m] if is_symmetric else lowers[m][n - m - 1]
            row = row - share * uppers[m][n - m :]
        row = computed_once_on_cpu(row)
        uppers.append(row)
        pivots.append(1 / row[0])
        if not is_symmetric:
            column = matrix[n + 1 :, n]
            for m in range(n):
                column = column - uppers[m][n - m] * lowers[m][n - m :]
            lowers.append(computed_once_on_cpu(column * pivots[n]))
    solution: list[jax.Array] = []
    for row, pivot in zip(reversed(uppers), reversed(pivots), strict=True):
        known = (a * x for a, x in zip(row[1:-1], solution, strict=True))
        solution.insert(0, computed_once_on_cpu(pivot * functools.reduce(jnp.subtract, known, row[-1])))
    return jnp.stack(solution)


def inverse(matrix: jax.Array) -> jax.Array:
    """Return the inverse of a matrix (n, n, ...), by Gauss-Jordan elimination without pivots.

    Without a library: from 32 rows on LAPACK takes several threads, and with other programs on the machine up to 17 ms.

    Args:
        matrix: positive definite, with members along trailing axes.
    """

    def eliminate(n: jax.Array, now: jax.Array) -> jax.Array:
        pivot = 1 / now[n, n]
        row, column = (now[n] * pivot).at[n].set(pivot), now[:, n].at[n].set(0)
        cleared = now.at[:, n].set(0)
        return (cleared - column[:, None] * row[None]).at[n].set(row)

    return jax.lax.fori_loop(0, len(matrix), eliminate, matrix)
