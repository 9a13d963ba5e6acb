"""Systems at rest, for the tests of relaxed systems."""

import jax

from simkit.core.converge import converge
from simkit.core.status import Status


def at_rest(simulation, params=None, *, steps=5000, seed=0):
    """Return the result of a relaxation that converges, and its diagnostics."""

    @jax.jit
    def run(params, key):
        result = converge(simulation, steps)(simulation.init(params, key), params)
        return result, simulation.diagnose(result.state, params)

    result, numbers = run(simulation.params if params is None else params, jax.random.key(seed))
    assert int(result.status) == Status.CONVERGED
    return result, {name: float(number) for name, number in numbers.items()}
