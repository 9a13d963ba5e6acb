"""Every minimizer on every potential: force balance, energies that never increase, and rescaled units."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import minimizers
from simkit.molecular.minimizers import largest_norm
from tests.molecular.minimizers.test_minimizers import METHODS, STIFFNESS, cluster, overlapping


@pytest.mark.parametrize("pair", list(STIFFNESS))
@pytest.mark.parametrize("method", METHODS)
def test_every_minimizer_reaches_force_balance_and_monotone_ones_never_climb(x64, method, pair):
    evaluate, scale = cluster(pair)
    minimizer = minimizers.by_name(method)

    def step(carried):
        state, climb = carried
        after = minimizers.step(minimizer, state, evaluate, scale)
        if not minimizer.monotone:
            return after, climb
        # In units of the round-off of the sum of 156 terms, below which the work of the mean force decides.
        terms = jnp.maximum(jnp.abs(after.energy), 13 * STIFFNESS[pair] / 10)
        return after, jnp.maximum(climb, (after.energy - state.energy) / (100 * np.finfo(float).eps * terms))

    def unfinished(carried):
        state, _ = carried
        return (largest_norm(state.force) > 1e-10) & (state.iteration < 20_000)

    @jax.jit
    @jax.vmap
    def descend(position):
        start = minimizers.start(minimizer, position, evaluate, scale)
        state, climb = jax.lax.while_loop(unfinished, step, (start, jnp.zeros(())))
        return evaluate(position)[0], state, climb, evaluate(state.position)

    before, states, climb, (energies, forces) = descend(jnp.stack([overlapping(13, seed) for seed in range(8)]))
    assert max(float(largest_norm(force)) for force in states.force) <= 1e-10
    # The kept force is the force there, to the round-off of another batch of sums over twelve partners.
    np.testing.assert_allclose(states.force, forces, atol=1e-12)
    # Nothing evaporated: thirteen bound particles lie deeper than any twelve (LJ12 at most -37.97, Morse 12 -38.40),
    # and no farther apart than the longest arrangement of bonds.
    assert float(jnp.abs(states.position - states.position.mean(axis=1, keepdims=True)).max()) < 13
    assert float(energies.max()) < float(before.min())
    assert minimizer.monotone == (method in ("lbfgs", "conjugate_gradient", "gradient_descent"))
    assert not minimizer.monotone or float(climb.max()) <= 1
