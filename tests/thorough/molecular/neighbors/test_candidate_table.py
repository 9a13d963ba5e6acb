"""Neighbor lists from a table of pairs against lists from loops over candidates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.whole_arrays import whole_arrays
from simkit.molecular.neighbors import neighbor_list


# The first has less room than is needed: what is left out is the same too.
@pytest.mark.parametrize(
    ("count", "dimension", "reach", "is_periodic", "capacity"),
    [
        (40, 2, 0.3, True, 4),
        (12, 3, 0.45, False, 13),
        # From runs of candidates; with less room than is needed; with a run that is too long for that.
        (200, 2, 0.12, True, 20),
        (200, 2, 0.12, False, 5),
        (200, 2, 0.3, True, 70),
    ],
)
def test_the_table_gives_the_list_of_the_loop(x64, count, dimension, reach, is_periodic, capacity):
    position = jnp.asarray(np.random.default_rng(count).uniform(0, 1, (count, dimension)))
    cell = jnp.ones(dimension) if is_periodic else None

    def build(position):
        return neighbor_list.build(position, cell, reach, capacity)

    by_loops = jax.jit(build)(position)
    with whole_arrays():
        program = jax.jit(build).trace(position)
        by_table = program.lower().compile()(position)
    assert "top_k" in str(program.jaxpr) and "while" not in str(program.jaxpr)
    jax.tree.map(np.testing.assert_array_equal, by_loops, by_table)
