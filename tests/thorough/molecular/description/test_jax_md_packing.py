"""Packing with an energy of jax-md against the packing with soft_sphere."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import soft_sphere
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load

PARTICLES = 64


@pytest.fixture(scope="module")
def theirs():
    """Return the simulation; jax-md works for seconds when it is imported."""
    with jax.enable_x64(True):
        return build(load("jax_md_soft_spheres", {"config.relax.force_tolerance": 1e-10}))


def test_energy_force_and_stress_equal_those_of_soft_sphere(x64, theirs):
    ours = pair_interaction(soft_sphere(2.0), cutoff=lambda params: params["sigma"])
    params = {**theirs.params, "sigma": jnp.asarray(1.3), "epsilon": jnp.asarray(0.7)}
    state = jax.jit(theirs.init)(params, jax.random.key(0))
    numbers = jax.jit(theirs.diagnose)(state, params)
    each = jax.jit(theirs.observe)(state, params)["energy_of_particle"]
    assert float(each.sum()) == pytest.approx(float(numbers["energy"]), rel=1e-12)
    position, side = state.descent.position, 1.3 * math.sqrt(PARTICLES * math.pi / (4 * 0.95))
    cell = jnp.array([side, side])
    # Sums of some hundred terms, all positive.
    energy = ours.energy(position, cell, params, ())
    assert float(numbers["energy"]) == pytest.approx(float(energy), rel=1e-12)
    np.testing.assert_allclose(state.descent.force, ours.force(position, cell, params, ()), atol=1e-12)
    pressure = -jnp.trace(ours.stress(position, cell, params, ())) / 2
    assert float(numbers["pressure"]) == pytest.approx(float(pressure), rel=1e-12)


def test_pressure_is_the_derivative_of_the_relaxed_energy_with_respect_to_the_area(x64, theirs):
    @jax.jit
    def relaxed(params):
        result = converge(theirs, 5000)(theirs.init(params, jax.random.key(0)), params)
        return result.state, result.status

    state, status = relaxed(theirs.params)
    assert int(status) == Status.CONVERGED

    @jax.jit
    def energy(fraction):
        params = {**theirs.params, "packing_fraction": fraction}
        return theirs.diagnose(converge(theirs, 5000)(state, params).state, params)["energy"]

    fraction = 0.95
    slope = float(jax.jit(jax.grad(energy))(fraction))
    pressure = float(jax.jit(theirs.diagnose)(state, theirs.params)["pressure"])
    area = PARTICLES * math.pi / (4 * fraction)
    # dE/dphi = -p dA/dphi = p A / phi; forces of 1e-10 on displacements of order one leave that much.
    assert slope == pytest.approx(pressure * area / fraction, rel=1e-7)
