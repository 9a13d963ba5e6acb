"""Molecular dynamics: neighbor lists, overflows, batches, and diagnostics."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.status import Status, status_of
from simkit.engine.driver import Plan
from simkit.molecular.dynamics import langevin, maxwell_boltzmann, velocity_verlet
from simkit.storage.store import Store
from tests.driving import drive
from tests.molecular.dynamics.moving import floats, gas, gas_interaction, oscillators

PLAN = Plan(steps=120, every=1)
ROOM = 40
# What the square lattice of the start needs: four neighbors beside, four across. The gas needs more.
LITTLE_ROOM = 8


def hot(capacity=ROOM):
    return gas(langevin, capacity=capacity, temperature=3.0, density=0.5)


def recorded(simulation, key, store=None, stop=None):
    """Return frames and diagnostics of a driven run, stacked, and its pieces."""
    pieces = []
    for piece in drive(simulation, simulation.params, key, PLAN, store=store):
        pieces.append(piece)
        if piece.index == stop:
            break
    return {name: np.concatenate([p.arrays[name] for p in pieces]) for name in pieces[0].arrays}, pieces


@functools.cache
def roomy():
    """Return the record and the pieces of a run that always had room."""
    return recorded(hot(), jax.random.key(1))


def test_listed_pairs_are_all_pairs_at_every_step(x64):
    found, pieces = roomy()
    exact, params = gas_interaction("all_pairs"), hot().params
    cell = jnp.asarray(found["observed.box"][0])

    @jax.jit
    @jax.vmap
    def expected(position):
        return exact.energy(position, cell, params, ()), exact.force(position, cell, params, ())

    energy, force = expected(jnp.asarray(found["observed.position"]))
    assert len(energy) == 121
    # Fast atoms cross the skin in some twenty steps.
    assert 4 < int(pieces[-1].state.neighbors.builds) < 60
    # Sums of 64 atoms' energies and forces of up to 1e2 each, in another order and at wrapped positions.
    np.testing.assert_allclose(found["diagnosed.potential_energy"], energy, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found["observed.force"], force, rtol=0, atol=1e-11)


def test_a_run_with_an_overflow_equals_one_with_a_large_list_bit_for_bit(x64):
    found, _ = roomy()
    grown, pieces = recorded(hot(LITTLE_ROOM), jax.random.key(1))
    sizes = [piece.state.neighbors.index.shape[0] for piece in pieces]
    assert sizes[0] == LITTLE_ROOM < sizes[-1] < ROOM
    assert (pieces[-1].status == Status.OK).all()
    for name in found:
        np.testing.assert_array_equal(grown[name], found[name])


def test_overflow_without_a_driver_is_a_status_and_nan(x64):
    simulation = hot(LITTLE_ROOM)
    state = simulation.init(simulation.params, jax.random.key(1))
    state = jax.jit(segment(simulation, 120))(state, simulation.params)
    assert int(status_of(simulation)(state, simulation.params)) == Status.BUFFER_OVERFLOW
    assert np.isnan(simulation.diagnose(state, simulation.params)["energy"])


def test_stopped_run_is_resumed_bit_for_bit(x64, tmp_path):
    found, _ = roomy()
    recorded(hot(), jax.random.key(1), Store(tmp_path), stop=7)
    recorded(hot(), jax.random.key(1), Store(tmp_path))
    stored = Store(tmp_path).read()
    for name in found:
        np.testing.assert_array_equal(np.concatenate([arrays[name] for arrays in stored]), found[name])


def test_members_with_their_own_seeds_and_temperatures_equal_single_runs(x64):
    simulation, members, steps = hot(LITTLE_ROOM), 3, 40
    many, keys = ensemble(simulation, ["temperature"]), jax.random.split(jax.random.key(2), members)
    params = {**simulation.params, "temperature": jnp.array([1.0, 2.0, 3.0])}
    start = jax.jit(many.init)(params, keys)
    together = jax.jit(segment(many, steps))(start, params)
    alone = jax.jit(segment(simulation, steps))
    for member in range(members):
        own = {**simulation.params, "temperature": params["temperature"][member]}
        single = alone(simulation.init(own, keys[member]), own)
        # Vectorized code may round the last bit otherwise; in 0.2 units of time chaos multiplies that by ten or so.
        np.testing.assert_allclose(together.position[member], single.position, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.velocity[member], single.velocity, rtol=0, atol=1e-12)
        assert int(together.neighbors.builds[member]) == int(single.neighbors.builds)


def test_diagnostics_equal_their_definitions(x64):
    found, _ = roomy()
    velocity, box = found["observed.velocity"], found["observed.box"][0]
    kinetic = (velocity**2).sum(axis=(1, 2)) / 2
    np.testing.assert_allclose(found["diagnosed.kinetic_energy"], kinetic, rtol=1e-12)
    # In a bath all 128 components count.
    np.testing.assert_allclose(found["diagnosed.temperature"], 2 * kinetic / 128, rtol=1e-12)
    np.testing.assert_allclose(found["diagnosed.time"], 0.005 * np.arange(121), rtol=1e-12)
    np.testing.assert_allclose(
        found["diagnosed.momentum"], np.linalg.norm(velocity.sum(axis=1), axis=1), rtol=0, atol=1e-11
    )
    total = found["diagnosed.kinetic_energy"] + found["diagnosed.potential_energy"]
    np.testing.assert_allclose(found["diagnosed.energy"], total, rtol=1e-12)
    # The pressure is -dF/dV: kinetic energy falls as V^(-2/d) when momenta are squeezed along with the box.
    exact, params = gas_interaction("all_pairs"), hot().params
    position = jnp.asarray(found["observed.position"][-1])

    def energy(stretch):
        squeezed = jnp.asarray(velocity[-1]) / stretch
        return jnp.sum(squeezed**2) / 2 + exact.energy(stretch * position, stretch * jnp.asarray(box), params, ())

    slope = jax.jit(jax.grad(energy))(1.0)
    # d/dV = 1 / (2 V) d/dstretch in two dimensions.
    assert float(found["diagnosed.pressure"][-1]) == pytest.approx(float(-slope / (2 * box.prod())), rel=1e-10)


def test_galilean_boost_changes_neither_temperature_nor_pressure(x64):
    def boosted(by):
        def velocity(params, key):
            rest = maxwell_boltzmann(key, params["temperature"], params["mass"], (16, 2), drift=False)
            return rest + jnp.array([by, 0.0])

        interaction = gas_interaction("all_pairs")
        start = jnp.asarray(np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 1.3)
        simulation = velocity_verlet(
            interaction,
            lambda params, key: start,
            params=floats(epsilon=1.0, sigma=1.0, mass=2.0, temperature=0.8, time_step=0.005),
            cell=lambda params: jnp.array([5.2, 5.2]),
            velocity=velocity,
        )
        state = simulation.init(simulation.params, jax.random.key(4))
        return simulation.diagnose(state, simulation.params)

    rest, moving = boosted(0.0), boosted(5.0)
    for name in ("temperature", "pressure", "potential_energy"):
        assert float(moving[name]) == pytest.approx(float(rest[name]), rel=1e-12)
    assert float(moving["momentum"]) == pytest.approx(16 * 2.0 * 5.0, rel=1e-12)
    assert float(moving["kinetic_energy"] - rest["kinetic_energy"]) == pytest.approx(16 * 2.0 * 25 / 2, rel=1e-12)


def test_a_run_that_becomes_unstable_has_that_status(x64):
    # A time step of three over the frequency is unstable.
    simulation = oscillators(velocity_verlet, 1, time_step=3.0)
    end = jax.jit(segment(simulation, 3000))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert int(simulation.status(end, simulation.params)) == Status.NON_FINITE
