"""Loops split over cores against loops on one core."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular.neighbors.cores import split_over_cores


def test_split_over_cores_returns_its_number_under_vmap_too():
    def total(x):
        return jax.lax.fori_loop(0, 5, lambda k, sums: sums + split_over_cores(k) * x, jnp.zeros_like(x))

    numbers = jnp.arange(6.0).reshape(3, 2)
    # 0 + 1 + 2 + 3 + 4, exact in binary.
    np.testing.assert_array_equal(jax.jit(jax.vmap(total))(numbers), 10 * numbers)
