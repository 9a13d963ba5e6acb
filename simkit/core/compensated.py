"""Compensated sums: running totals whose rounding error does not grow with the number of terms."""

from typing import Any

import jax


def compensated_sum[T](total: T, excess: T, addend: Any) -> tuple[T, T]:
    """Return ``total + addend`` and its rounding error, which the next call subtracts (Kahan summation).

    A plain sum gives the time of a run in float32 with an error of 0.5 % after 400,000 steps of 1 ms. The derivative is
    that of the exact sum.

    Args:
        total: the sum so far, a pytree of arrays.
        excess: rounding error of ``total``, same structure; zero at the start.
        addend: the next term, same structure.

    Reference: Kahan, Communications of the ACM 8, 40 (1965), doi:10.1145/363707.363723.
    """
    change = jax.tree.map(lambda addend, excess: addend - excess, addend, excess)
    new = jax.tree.map(lambda total, change: total + change, total, change)
    return new, jax.tree.map(lambda new, total, change: (new - total) - change, new, total, change)
