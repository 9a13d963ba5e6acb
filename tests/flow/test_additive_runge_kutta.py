import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.spectral.fourier_chebyshev import EXPLICIT, IMPLICIT, WEIGHTS, additive_runge_kutta
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def solve(rate, start, stiffness, time, steps):
    def step(_, values):
        return additive_runge_kutta(rate, values, stiffness, jnp.asarray(time / steps))

    return jax.lax.fori_loop(0, steps, step, start)


def test_coefficients_satisfy_every_condition_of_third_order():
    explicit, implicit, weights = np.array(EXPLICIT), np.array(IMPLICIT), np.array(WEIGHTS)
    nodes = explicit.sum(axis=1)
    # Fractions of integers with 13 digits.
    np.testing.assert_allclose(implicit.sum(axis=1), nodes, atol=1e-12)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights @ nodes == pytest.approx(1 / 2, abs=1e-12)
    assert weights @ nodes**2 == pytest.approx(1 / 3, abs=1e-12)
    for table in (explicit, implicit):
        assert weights @ table @ nodes == pytest.approx(1 / 6, abs=1e-12)


def test_third_order_in_both_parts():
    # q' = -q^2 - q has the solution q = 1/(2 exp(t) - 1) from q(0) = 1.
    exact = 1 / (2 * np.exp(1.0) - 1)
    errors = [abs(float(solve(lambda q: -(q**2), jnp.ones(()), jnp.ones(()), 1.0, n)) - exact) for n in (40, 80)]
    # The error of the next order is smaller by a step, 1/40, and a factor of a few.
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.1)


@every([(2.48, True), (2.50, False)])
def test_oscillations_are_stable_up_to_the_limit_that_is_stated(turn, stable):
    rotate = jnp.asarray([[0.0, -1.0], [1.0, 0.0]])
    after = additive_runge_kutta(lambda q: rotate @ q, jnp.asarray([1.0, 0.0]), jnp.zeros(()), jnp.asarray(turn))
    assert bool(jnp.linalg.norm(after) <= 1) == stable
