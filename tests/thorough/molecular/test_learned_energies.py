"""Derivatives of what relaxed under a learned energy."""

import jax
import jax.numpy as jnp
import pytest

import simkit
from simkit import molecular
from tests.molecular.test_learned_and_ase import double_precision, model, weights

__all__ = ["double_precision", "model", "weights"]


def cluster(model, weights):
    def start(params, key):
        corners = jnp.stack(jnp.meshgrid(*[jnp.arange(2.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        return 1.1 * corners[:6] + 0.02 * jnp.sin(jnp.arange(18.0).reshape(6, 3))

    return molecular.relaxation.relaxation(
        model,
        start,
        params={"weights": jax.tree.map(lambda w: w.astype(jnp.float64), weights)},
        scale=lambda params: molecular.minimizers.Scale(jnp.asarray(1.0), jnp.asarray(50.0)),
        force_tolerance=1e-13,
    )


def test_a_learned_energy_relaxes_and_derivatives_of_the_minimum_by_its_weights_are_those_of_differences(
    model, weights
):
    relaxed = cluster(model, weights)
    relaxed, _ = simkit.core.converge_with_growth(relaxed, 500)(relaxed.params, jax.random.key(0))

    @jax.jit
    def width(params):
        end = simkit.converge(relaxed, 500)(relaxed.init(params, jax.random.key(0)), params)
        position = end.state.descent.position
        return jnp.sum((position - position.mean(axis=0)) ** 2), end.status

    value, status = width(relaxed.params)
    assert status == simkit.Status.CONVERGED and 1 < value < 20
    slope = jax.jit(jax.grad(lambda params: width(params)[0]))(relaxed.params)["weights"]
    for name, entry in (("in", (3, 1)), ("out", (2,))):
        moved = [
            width({"weights": relaxed.params["weights"] | {name: relaxed.params["weights"][name].at[entry].add(step)}})
            for step in (1e-4, -1e-4)
        ]
        assert float(slope[name][entry]) == pytest.approx(float(moved[0][0] - moved[1][0]) / 2e-4, rel=1e-6, abs=1e-9)
