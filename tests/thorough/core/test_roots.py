"""Roots: derivatives of every order in every mode, at no cost in programs without derivatives, the longer ones."""

import itertools

import jax
import numpy as np
import pytest

from tests.core.test_derivatives import cube_root

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("modes", list(itertools.product([jax.jacfwd, jax.jacrev], repeat=3)))
def test_three_derivatives_in_any_mode_are_those_of_the_function(modes):
    p, function = 1.7, cube_root
    expected, factor = [], 1.0
    for order in range(3):
        factor *= 1 / 3 - order
        expected.append(factor * p ** (1 / 3 - order - 1))
    for mode, derivative in zip(modes, expected, strict=True):
        function = mode(function)
        np.testing.assert_allclose(function(p), derivative, rtol=1e-13)
