"""Splitting of compiled loops over the cores of a CPU."""

import jax
import jax.numpy as jnp

# Smallest arrays, in bytes, that are split: waking another core takes as long as computing smaller ones.
WORTH_SPLITTING = 500_000


def split_over_cores(number: jax.Array) -> jax.Array:
    """Return ``number``; a loop whose body passes a number through this function uses all cores of a CPU.

    On a CPU XLA compiles a loop of plain arithmetic into one function on one core, however long its arrays are. A loop
    that contains a sort is not fused, and each of its operations is split over the cores. So this function sorts two
    equal numbers. On other devices it does nothing.

    Args:
        number: scalar that the loop depends on, since the compiler removes unused code.
    """

    def through_sort(number: jax.Array) -> jax.Array:
        return jax.lax.sort(jnp.stack([number, number]))[0]

    return jax.lax.platform_dependent(number, cpu=through_sort, default=lambda number: number)
