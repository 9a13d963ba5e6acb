"""Pair potentials: forces against derivatives, positions of minima, smoothness of cut-offs."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.potentials import lennard_jones
from tests.molecular.potentials.test_potentials import EVERY, LENGTHS, program


def test_overlapping_starts_have_finite_energies_and_forces_in_single_precision():
    distance = jnp.concatenate([jnp.zeros(2), jnp.logspace(-30, 0, 301)]).astype(jnp.float32)
    for name, (energy, force, _) in program(False)(distance).items():
        assert energy.dtype == force.dtype == jnp.float32, name
        assert bool(jnp.isfinite(energy).all()), name
        # Minimizers square forces and sum over thousands of particles.
        assert bool(jnp.isfinite(1e4 * force**2).all()), name


def test_a_switch_changes_nothing_before_its_shell_and_falls_monotonically_through_it(x64):
    potential, parameters = EVERY["lennard-jones, switched"]
    before = jnp.linspace(0.8, 1.6, 20)
    np.testing.assert_array_equal(potential.energy(before, **parameters), lennard_jones().energy(before, **LENGTHS))
    within = jnp.linspace(1.6, 2.0, 100)
    share = potential.energy(within, **parameters) / lennard_jones().energy(within, **LENGTHS)
    assert bool((jnp.diff(share) <= 0).all())
    # Halfway through the shell the quintic is 1/2.
    middle = potential.energy(1.8, **parameters) / lennard_jones().energy(1.8, **LENGTHS)
    assert float(middle) == pytest.approx(0.5, rel=1e-13)
