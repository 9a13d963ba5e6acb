"""Errors of smooth particle-mesh Ewald: order in the mesh, and a mesh for a tolerance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import electrostatics
from tests.molecular.test_electrostatics import by_ewald, relative_error, results

SKEWED = np.array([[8.0, 0.0, 0.0], [1.9, 7.4, 0.0], [-1.3, 1.1, 8.5]])


@pytest.fixture(scope="module")
def reference():
    """Return what `by_ewald` does, in a skewed cell."""
    return by_ewald(SKEWED)


def test_the_force_error_of_a_mesh_falls_with_one_power_less_than_the_order_of_the_splines(x64, reference):
    at, (_, force, _) = reference
    for order in (4, 5, 6):
        coarse, fine = (
            relative_error(results(electrostatics.particle_mesh_ewald((n, n, n), order=order), at)[1], force)
            for n in (48, 72)
        )
        measured = np.log(coarse / fine) / np.log(72 / 48)
        # The next order still adds a few tenths.
        assert order - 1.1 < measured < order + 0.3, (order, measured)


def test_a_mesh_for_a_tolerance_has_that_force_error(x64, reference):
    (x, cell, params, _), (_, force, _) = reference
    for tolerance, order in ((1e-3, 4), (1e-4, 5), (1e-5, 6), (1e-7, 8)):
        damping = electrostatics.split(tolerance).damping / 3.2
        coulomb = electrostatics.particle_mesh_ewald(electrostatics.mesh_for(cell, 3.2, tolerance, order), order=order)
        error = relative_error(results(coulomb, (x, cell, params | {"damping": damping}, ((), ())))[1], force)
        assert error < tolerance, (tolerance, order, error)


def test_derivatives_through_a_mesh_are_those_of_its_energy(x64, reference):
    (x, cell, params, _), _ = reference
    coulomb = electrostatics.particle_mesh_ewald((16, 15, 18), order=5)
    random = np.random.default_rng(1)
    start = x, cell, params["charge"]
    along = tuple(jnp.asarray(random.normal(size=each.shape)) / 10 for each in start)
    weight = jnp.asarray(random.normal(size=x.shape))

    def values(position, cell, charge):
        at = position, cell, params | {"charge": charge}, ((), ())
        return coulomb.energy(*at) + jnp.sum(weight * coulomb.force(*at))

    @jax.jit
    def derivatives(step):
        moved = tuple(x + step * d for x, d in zip(start, along, strict=True))
        value, forward = jax.jvp(values, moved, along)
        pulled = jax.grad(values, argnums=(0, 1, 2))(*moved)
        reverse = sum(jnp.sum(g * d) for g, d in zip(pulled, along, strict=True))
        return value, forward, reverse

    # All members at once: `vmap` keeps the values.
    steps = jnp.asarray([-2e-4, -1e-4, 0.0, 1e-4, 2e-4])
    value, forward, reverse = jax.vmap(derivatives)(steps)
    far2, far1, _, near1, near2 = value
    difference = (8 * (near1 - far1) - (near2 - far2)) / 12e-4
    np.testing.assert_allclose(forward[2], difference, rtol=1e-7)
    np.testing.assert_allclose(reverse[2], forward[2], rtol=1e-11)
    np.testing.assert_allclose(value[2], jax.jit(values)(*start), rtol=1e-12)
