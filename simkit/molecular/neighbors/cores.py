"""Loops whose iterations are split over the cores of a CPU."""

import jax
import jax.numpy as jnp

# Arrays of fewer bytes are not worth splitting: waking another core takes as long as computing them.
WORTH_SPLITTING = 500_000


def split_over_cores(number: jax.Array) -> jax.Array:
    """Return ``number``; a loop whose body passes one through here uses all cores of a processor.

    On processors XLA compiles a loop of plain arithmetic into one function, which runs on one core, however long its
    arrays are. It leaves a loop that sorts as it is, and splits each of its operations over the cores. So this sorts,
    two equal numbers. On other devices it does nothing.

    Args:
        number: scalar; something the loop depends on, or the compiler drops it.
    """

    def through_sort(number: jax.Array) -> jax.Array:
        return jax.lax.sort(jnp.stack([number, number]))[0]

    return jax.lax.platform_dependent(number, cpu=through_sort, default=lambda number: number)
