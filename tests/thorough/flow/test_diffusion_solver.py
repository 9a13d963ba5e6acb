"""Longer tests of diffusion solver."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.flow.test_diffusion_solver import METHODS, noise, solver
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every(product(["duct"], METHODS))
def test_derivatives_match_differences(name, method):
    source, weight, direction = (noise(name, seed) for seed in (4, 5, 6))

    def total(f, coefficient):
        return jnp.sum(weight * solver(name, method)(f, coefficient) ** 2)

    @jax.jit
    def derived(f, c):
        value, slopes = jax.value_and_grad(total, (0, 1))(f, c)
        return value, slopes, jax.jvp(lambda c: total(f, c), (c,), (1.0,))[1]

    c, h = 0.05, 1e-6
    _, (by_source, by_coefficient), forward = derived(source, c)
    along, differences = (
        float(derived(source + h * x, c + h * y)[0] - derived(source - h * x, c - h * y)[0]) / (2 * h)
        for x, y in ((direction, 0.0), (0.0 * direction, 1.0))
    )
    # Central differences err by rounding, 1e-15/h of sums of a hundred terms, and by h^2 times large derivatives.
    assert np.sum(by_source * direction) == pytest.approx(along, rel=1e-6)
    assert by_coefficient == pytest.approx(differences, rel=1e-6)
    assert forward == pytest.approx(differences, rel=1e-6)
