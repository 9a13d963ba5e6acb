"""Pair potentials: forces against derivatives, positions of minima, smoothness of cut-offs."""

import jax
import jax.numpy as jnp
import pytest

from tests.molecular.potentials.test_potentials import EVERY


@pytest.mark.parametrize("name", EVERY)
def test_second_derivatives_and_those_with_respect_to_parameters_are_finite(x64, name):
    potential, parameters = EVERY[name]
    # Distances of every kind: none, overlap, the core's edge, ordinary, beyond every cut-off.
    distance = jnp.array([0.0, 1e-6, 0.05, 0.09, 0.3, 0.9, 1.0, 1.6, 2.0, 2.4, 50.0])

    def total(distance, parameters):
        return (potential.energy(distance, **parameters) + potential.force(distance, **parameters)).sum()

    given = {name: jnp.asarray(value) for name, value in parameters.items()}
    # No infinity can hide in the sum: one less another is not finite either.
    for derivative in (jax.grad(total, (0, 1)), jax.jacfwd(jax.grad(total, (0, 1)), (0, 1))):
        assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(derivative(distance, given)))
