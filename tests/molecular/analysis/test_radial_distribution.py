"""Radial distribution function of an ideal gas and of crystals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.order import highest_peak, radial_distribution, shell_centers

distribution = functools.partial(jax.jit, static_argnames="bins")(
    lambda position, cell, reach, bins: radial_distribution(position, cell, reach=reach, bins=bins)
)


def test_shells_beyond_half_the_cell_are_nan(x64):
    position = jax.random.uniform(jax.random.key(3), (20, 3)) * jnp.array([4.0, 5.0, 6.0])
    found = np.asarray(distribution(position, jnp.array([4.0, 5.0, 6.0]), 2.5, 10))
    assert np.isfinite(found[:8]).all()
    assert np.isnan(found[8:]).all()


def test_memory_does_not_grow_with_the_pairs(x64):
    count = 20_000
    lowered = distribution.lower(jnp.zeros((count, 3)), jnp.ones(3), 0.5, 50)
    # A few dozen copies of the positions at most, where the distances of all pairs would be 3.2 GB.
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 40 * count * 3 * 8


def test_its_derivative_is_zero_and_finite(x64):
    position = jax.random.uniform(jax.random.key(4), (10, 2))
    slope = jax.jit(jax.grad(lambda x: radial_distribution(x, jnp.ones(2), reach=0.5, bins=4).sum()))(position)
    assert float(jnp.abs(slope).max()) == 0


def test_peak_is_interpolated_between_the_shells(x64):
    centers = shell_centers(3.0, 60)
    assert centers[0] == pytest.approx(0.025)
    position, height = highest_peak(jnp.asarray(2.5 - 40 * (centers - 1.0912) ** 2), 3.0)
    # A parabola is reproduced exactly.
    assert float(position) == pytest.approx(1.0912, rel=1e-12)
    assert float(height) == pytest.approx(2.5, rel=1e-12)


def test_no_shells_are_refused():
    with pytest.raises(UserError, match="bins = 0 is not an integer of at least 1"):
        radial_distribution(jnp.zeros((2, 2)), jnp.ones(2), reach=0.5, bins=0)
