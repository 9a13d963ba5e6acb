"""Basin hopping: the published global minima from random starts, and the rules of the walk."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular.systems.basin_hopping import basin_hopping, hop, is_within
from tests.physics.test_cluster_minima import LOWEST, report, searched


@functools.cache
def small():
    return basin_hopping(particles=7, hops=20)


@functools.cache
def found():
    """Return a finished search of 7 atoms and what converges it."""
    simulation = small()
    run = jax.jit(lambda state, params: converge(simulation, 5000)(state, params))
    return run(simulation.init(simulation.params, jax.random.key(0)), simulation.params), run


# Rates measured: docs/search_and_design.md. Each bound is missed with probability below 1e-3 where they hold.
@pytest.mark.parametrize(
    ("particles", "potential", "hops", "walkers", "steps", "least"),
    [
        (19, "lennard_jones", 60, 16, 5500, 11),
        (26, "lennard_jones", 150, 16, 15000, 12),
        (31, "lennard_jones", 400, 32, 45000, 1),
        (19, "morse", 60, 16, 5000, 11),
        (26, "morse", 200, 16, 18000, 12),
    ],
)
def test_walkers_from_random_starts_find_larger_minima(x64, particles, potential, hops, walkers, steps, least):
    found = report(particles, potential, hops, walkers, steps)
    assert found.success_rate >= least / walkers


def test_the_lowest_energy_never_increases(x64):
    for particles in (13, 19):
        energy = searched(particles, "lennard_jones", *((30, 16, 2500) if particles == 13 else (60, 16, 5500)))[1]
        # Worked out anew at every frame, by a sum of some hundred terms: to round-off.
        assert np.diff(energy["energy"], axis=0).max() < 1e-11


def test_a_hop_displaces_every_atom_and_moves_the_most_weakly_bound_to_the_surface(x64):
    rng = np.random.default_rng(0)
    position, chance = jnp.asarray(rng.normal(size=(9, 3))), jnp.asarray(rng.uniform(size=(10, 3)))
    energies = jnp.asarray([-6.0, -5, -5, -4, -4, -4, -4, -2.9, -4])
    moved = hop(position, energies, chance, step=jnp.asarray(0.3), container=jnp.asarray(100.0))
    arm = position - position.mean(axis=0)
    others = np.delete(np.arange(9), 7)
    np.testing.assert_allclose(moved[others], (arm + 0.3 * (2 * chance[:9] - 1))[others], rtol=1e-14)
    assert np.linalg.norm(moved[7]) == pytest.approx(float(np.linalg.norm(arm, axis=1).max()), rel=1e-14)
    # At half the energy of the strongest it is one like the others.
    bound = hop(position, energies.at[7].set(-3.1), chance, step=jnp.asarray(0.3), container=jnp.asarray(100.0))
    np.testing.assert_allclose(bound[7], arm[7] + 0.3 * (2 * chance[7] - 1), rtol=1e-14)


def test_a_hop_ends_inside_the_container(x64):
    rng = np.random.default_rng(1)
    position, chance = jnp.asarray(5 * rng.normal(size=(30, 3))), jnp.asarray(rng.uniform(size=(31, 3)))
    moved = hop(position, jnp.full(30, -1.0), chance, step=jnp.asarray(0.5), container=jnp.asarray(3.0))
    assert float(jnp.linalg.norm(moved, axis=1).max()) <= 3.0 * (1 + 1e-15)
    assert not bool(is_within(position, jnp.asarray(3.0)))


def test_a_search_converges_to_the_lowest_minimum_found(x64):
    result, _ = found()
    assert int(result.status) == Status.CONVERGED
    state, simulation = result.state, small()
    assert int(state.quenches) == 21
    energy = float(simulation.diagnose(state, simulation.params)["energy"])
    # A loose quench leaves some 1e-3; the four minima of seven atoms are 0.4 and more apart.
    assert -0.05 < energy - float(state.lowest_energy) <= 0
    assert LOWEST["lennard_jones"][7] - 1e-6 < energy < -14


def test_a_finished_search_relaxes_again_under_other_parameters(x64):
    result, run = found()
    simulation = small()
    params = {**simulation.params, "sigma": jnp.asarray(1.02), "epsilon": jnp.asarray(1.5)}
    again = run(result.state, params)
    assert int(again.status) == Status.CONVERGED
    assert int(again.state.quenches) == int(result.state.quenches)
    before, after = (
        float(simulation.diagnose(*at)["energy"]) for at in ((result.state, simulation.params), (again.state, params))
    )
    # The same minimum: quadratic in the remaining force, so to round-off.
    assert after == pytest.approx(1.5 * before, rel=1e-12)


def test_implicit_derivative_of_the_minimum_is_that_of_its_size(x64):
    simulation = small()
    start = simulation.init(simulation.params, jax.random.key(0))

    def size(sigma, temperature):
        params = {**simulation.params, "sigma": sigma, "temperature": temperature}
        position = converge(simulation, 5000)(start, params).state.trial.descent.position
        arm = position - position.mean(axis=0)
        return jnp.sum(arm**2 * jnp.arange(7.0)[:, None])

    value, (by_sigma, by_temperature) = jax.jit(jax.value_and_grad(size, (0, 1)))(jnp.asarray(1.0), jnp.asarray(0.8))
    # All lengths are proportional to sigma; the minimum knows nothing of the temperature of the walk.
    assert float(by_sigma) == pytest.approx(2 * float(value), rel=1e-8)
    assert float(by_temperature) == 0
