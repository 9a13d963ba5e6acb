"""Contract of every minimizer, on small clusters and packings; FIRE on problems with known answers."""

import jax
import jax.numpy as jnp
import pytest

from simkit.molecular import minimizers
from simkit.molecular.minimizers import fire, start, step
from tests.molecular.minimizers.test_minimizers import UNITS


def test_derivatives_of_iterations_that_end_at_rest_follow_the_minimum(x64):
    """Forces fall to zero, where quotients of moves and forces are undefined."""

    def middle(center, minimizer):
        def evaluate(position):
            return 0.65 * jnp.sum((position - center) ** 2), -1.3 * (position - center)

        def advance(state, _):
            return step(minimizer, state, evaluate, UNITS), None

        state = start(minimizer, jnp.array([[0.4, 0.4], [0.5, 0.3], [0.2, 0.6]]), evaluate, UNITS)
        return jnp.mean(jax.lax.scan(advance, state, length=300)[0].position)

    chosen = (fire(), minimizers.gradient_descent(), minimizers.conjugate_gradient(), minimizers.lbfgs(memory=2))
    slopes = jax.jit(lambda center: [jax.grad(middle)(center, minimizer) for minimizer in chosen])
    slopes = slopes.lower(0.7).compile({"xla_backend_optimization_level": 0})(0.7)
    assert slopes == [pytest.approx(1, rel=1e-8)] * 4
