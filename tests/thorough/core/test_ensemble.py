"""Ensembles equal loops over their members, the longer ones."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.averages import averaged
from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment, trajectory
from tests.core.test_ensemble import VALUES
from tests.core.toys import oscillator


@pytest.mark.parametrize("over", [(), ("frequency",), ("time_step",), ("frequency", "time_step")])
def test_an_ensemble_over_any_subset_of_params_equals_a_loop(x64, over):
    simulation = oscillator()
    keys = jax.random.split(jax.random.key(0), 3)
    params = {**simulation.params, **{name: jnp.asarray(VALUES[name]) for name in over}}
    state, frames, diagnostics = jax.jit(trajectory(ensemble(simulation, over), 50, 10))(params, keys)
    run = jax.jit(trajectory(simulation, 50, 10))
    for i in range(3):
        alone = run({**simulation.params, **{name: jnp.asarray(VALUES[name][i]) for name in over}}, keys[i])
        # Round-off of 50 steps in float64.
        np.testing.assert_allclose(state.position[i], alone[0].position, rtol=1e-12)
        np.testing.assert_allclose(frames["position"][:, i], alone[1]["position"], rtol=1e-12)
        np.testing.assert_allclose(diagnostics["energy"][:, i], alone[2]["energy"], rtol=1e-12)


def together(calls):
    """Return an oscillator that knows how many are stepped at once."""
    alone = oscillator()

    def step_members(states, params):
        calls.append(states.position.shape[0])
        return jax.vmap(alone.step)(states, params)

    return dataclasses.replace(alone, step_members=step_members)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: averaged(x, lambda s, p: {"x": s.time}, every=2, skip=0)])
def test_an_ensemble_steps_its_members_together_also_of_averages(x64, wrap):
    calls, keys = [], jax.random.split(jax.random.key(0), 3)
    ends = []
    for member in (wrap(together(calls)), wrap(oscillator())):
        many = ensemble(member, ["frequency"])
        params = {**many.params, "frequency": jnp.asarray(VALUES["frequency"])}
        ends.append(segment(many, 20)(many.init(params, keys), params))
    assert calls
    assert set(calls) == {3}
    # The same operations in another program: round-off of 40 steps.
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12),
        *(dataclasses.replace(end, key=0) if hasattr(end, "key") else (end.mean, end.taken) for end in ends),
    )
