"""Ensembles equal loops over their members."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.status import Status, status_of
from tests.core.toys import oscillator

VALUES = {"frequency": np.array([0.5, 1.0, 2.0]), "time_step": np.array([0.01, 0.02, 0.005])}


def test_status_is_one_per_member_and_a_failed_member_leaves_the_others_alone():
    simulation = oscillator()
    params = {**simulation.params, "frequency": jnp.array([1.0, jnp.nan, 2.0])}
    many = ensemble(simulation, ["frequency"])
    state = segment(many, 10)(many.init(params, jax.random.split(jax.random.key(0), 3)), params)
    assert list(status_of(many)(state, params)) == [Status.OK, Status.NON_FINITE, Status.OK]


def test_ensemble_names_the_member_dimension():
    assert ensemble(oscillator()).dimensions == {"position": ("member", "oscillator")}


def test_a_batching_rule_on_one_step_would_have_no_reverse_mode():
    # Why there is step_members; where this fails, docs/concepts.md is out of date.
    step = jax.custom_batching.custom_vmap(jnp.sin)
    step.def_vmap(lambda size, batched, x: (jnp.sin(x), True))
    assert float(jax.jvp(step, (1.0,), (1.0,))[1]) == pytest.approx(np.cos(1), rel=1e-6)
    with pytest.raises(ValueError, match="Linearization failed to produce known values"):
        jax.grad(step)(1.0)
