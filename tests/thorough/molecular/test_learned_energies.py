"""Derivatives of what relaxed under a learned energy."""

import jax
import jax.numpy as jnp
import pytest

import simkit
from simkit import molecular

CUTOFF = 2.5
CENTERS = jnp.linspace(0.8, CUTOFF, 8)


def radial_network(weights, position, species, cell, neighbors):
    """Return the energy of each particle: a layer of neurons of the densities at several radii."""
    r = jnp.where(neighbors.is_pair, neighbors.distance, CUTOFF)
    window = jnp.where(neighbors.is_pair, (1 - (r / CUTOFF) ** 2) ** 3, 0)
    density = (window[..., None] * jnp.exp(-4 * (r[..., None] - CENTERS) ** 2)).sum(axis=1)
    hidden = jnp.tanh((density[:, :, None] * weights["in"]).sum(axis=1))
    core = jnp.where(neighbors.is_pair, window / r**12, 0).sum(axis=1) / 2
    return core + (hidden * weights["out"]).sum(axis=1)


@pytest.fixture(scope="module")
def model():
    return molecular.interactions.learned_energy(radial_network, cutoff=CUTOFF, capacity=4)


@pytest.fixture(scope="module")
def weights():
    keys = jax.random.split(jax.random.key(1))
    return {"in": 0.3 * jax.random.normal(keys[0], (8, 4)), "out": -jnp.abs(jax.random.normal(keys[1], (4,)))}


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


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
