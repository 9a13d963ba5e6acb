"""Pair energies in a table: exact cubics, derivatives by the values, and tables of scenario files."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.potentials import tabulated

POINTS = np.array([0.4, 0.5, 0.7, 1.0, 1.2, 1.5, 1.9, 2.0])


def cubic(r):
    return 3 * (2 - r) ** 3 - (2 - r) ** 2


def test_cubics_are_exact_and_end_at_the_last_distance(x64):
    spline, values = tabulated(POINTS), jnp.asarray(cubic(POINTS))
    r = jnp.linspace(0.4, 2.0, 33)
    np.testing.assert_allclose(spline.energy(r, values=values), cubic(r), rtol=0, atol=1e-13)
    np.testing.assert_allclose(spline.force(r, values=values), 9 * (2 - r) ** 2 - 2 * (2 - r), rtol=0, atol=1e-12)
    outside = jnp.asarray([0.39, 2.01])
    assert np.isnan(spline.energy(outside, values=values)[0]) and spline.energy(outside, values=values)[1] == 0
    assert float(spline.reach(values)) == 2.0


def test_distances_that_do_not_increase_are_refused():
    for wrong in ([1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0], [[1.0, 2.0, 3.0, 4.0]]):
        with pytest.raises(UserError, match="give at least 4 numbers, each larger than the one before"):
            tabulated(wrong)
