"""Derivatives of charges in periodic cells, and a mesh beside the sum."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import electrostatics
from tests.molecular.test_electrostatics import (
    CHARGES,
    EXCLUDED,
    PLACES,
    SKEWED,
    coulomb_energy,
    reference,
    relative_error,
    results,
)

__all__ = ["reference"]


def test_derivatives_by_positions_charges_and_cell_are_central_differences(x64):
    coulomb, params = coulomb_energy(2.2, excluded=EXCLUDED)
    random = np.random.default_rng(1)
    weight = jnp.asarray(random.normal(size=PLACES.shape))
    start = jnp.asarray(PLACES), jnp.asarray(SKEWED), jnp.asarray(CHARGES)
    along = tuple(jnp.asarray(random.normal(size=each.shape)) for each in start)

    def values(position, cell, charge):
        at = position, cell, params | {"charge": charge}, ((), (), ())
        return jnp.stack([coulomb.energy(*at), jnp.sum(weight * coulomb.force(*at))])

    @jax.jit
    def derivatives(step):
        moved = tuple(x + step * d for x, d in zip(start, along, strict=True))
        value, forward = jax.jvp(values, moved, along)
        pulled = jax.jacrev(values, argnums=(0, 1, 2))(*moved)
        reverse = sum(jnp.sum(g * d, axis=tuple(range(1, g.ndim))) for g, d in zip(pulled, along, strict=True))
        at = *moved[:2], params | {"charge": moved[2]}, ((), (), ())
        return value, forward, reverse, pulled[0][0] + coulomb.force(*at)

    far2, far1, near1, near2 = (derivatives(step)[0] for step in (-2e-4, -1e-4, 1e-4, 2e-4))
    _, forward, reverse, force_error = derivatives(0.0)
    difference = (8 * (near1 - far1) - (near2 - far2)) / 12e-4
    np.testing.assert_allclose([forward, reverse], [difference] * 2, rtol=1e-7)
    np.testing.assert_allclose(force_error, 0, atol=1e-12)


def test_on_a_fine_mesh_particle_mesh_ewald_is_ewald_summation(x64, reference):
    at, (energy, force, stress) = reference
    mesh = results(electrostatics.particle_mesh_ewald((60, 60, 64), order=10), at)
    np.testing.assert_allclose(mesh[0], energy, atol=1e-8)
    assert relative_error(mesh[1], force) < 1e-8
    np.testing.assert_allclose(mesh[2], stress, atol=1e-9)
