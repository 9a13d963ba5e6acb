"""Neighbor lists against brute force, from tables and loops, and runs whose lists overflow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge_with_growth
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.pytrees import pytree
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status
from simkit.engine.driver import Plan, Program
from simkit.engine.lanes import Queue
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors import neighbor_list
from simkit.molecular.potentials import soft_sphere
from simkit.storage.store import Store
from tests.driving import drive
from tests.molecular.potentials.test_potentials import EVERY
from tests.molecular.test_neighbors import PARTICLES, cell_of, check_list, listed, near
from tests.stopping import StopAfter, Stopped

KINDS = ["free", "orthorhombic", "triclinic"]


FALLING = 48
PLAN = Plan(steps=40, every=2)


@pytree
class DescentState:
    position: jax.Array
    force: jax.Array
    neighbors: object
    iteration: jax.Array


def attracted(method="neighbor_list", capacity=FALLING, spread=6.0):
    """Return soft disks falling toward the middle of a large box: everyone's neighbors become more all the time."""
    options = {"cutoff": lambda p: p["sigma"], "method": method, "skin": 0.15}

    def of_interaction(interaction):
        def force(position, params, neighbors):
            pull = params["pull"] * (5 * spread - position)
            return pull + interaction.force(position, cell(params), params, neighbors)

        def cell(params):
            return jnp.full(2, 10 * spread, params["sigma"].dtype)

        def init(params, key):
            position = spread * (4 + 2 * jax.random.uniform(key, (FALLING, 2), params["sigma"].dtype))
            neighbors = interaction.prepare(position, cell(params), params)
            return DescentState(
                position=position, force=force(position, params, neighbors), neighbors=neighbors, iteration=jnp.int32(0)
            )

        def step(state, params):
            position = state.position + 0.1 * state.force
            neighbors = interaction.refresh(state.neighbors, position, cell(params), params)
            return DescentState(
                position=position,
                force=force(position, params, neighbors),
                neighbors=neighbors,
                iteration=state.iteration + 1,
            )

        def diagnose(state, params):
            energy = interaction.energy(state.position, cell(params), params, state.neighbors)
            return {"iteration": state.iteration, "energy": energy, "force": jnp.abs(state.force).max()}

        def status(state, params):
            return jnp.where(done(state, params), jnp.int32(Status.CONVERGED), jnp.int32(Status.OK))

        def done(state, params):
            return jnp.abs(state.force).max() < 1e-9

        def residual(position, params):
            fixed = jax.lax.stop_gradient(position)
            return -force(position, params, interaction.prepare(fixed, cell(params), params))

        return Simulation(
            init=init,
            step=step,
            observe=lambda state, params: {"position": state.position},
            diagnose=diagnose,
            params={name: jnp.asarray(v, float) for name, v in {"epsilon": 1.0, "sigma": 1.0, "pull": 0.3}.items()},
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: state.position,
                residual=residual,
                replace=lambda state, position: dataclasses.replace(state, position=position),
            ),
            status=status,
            sized_like=lambda state: of_interaction(interaction.sized_like(state.neighbors)),
        )

    return of_interaction(pair_interaction(soft_sphere(2.0), capacity=capacity, **options))


@pytest.mark.parametrize("seed", range(3))
def test_energy_and_force_are_right_at_every_step_through_overflow(x64, seed):
    every_step = Plan(steps=40, every=1)
    runs = []
    for simulation in (attracted("all_pairs"), attracted(capacity=2)):
        pieces = list(drive(simulation, simulation.params, jax.random.key(seed), every_step))
        runs.append({name: np.concatenate([p.arrays[name] for p in pieces]) for name in pieces[0].arrays})
    assert runs[1]["diagnosed.energy"].shape == (41,)
    assert runs[0]["diagnosed.energy"].max() > 1
    for name in ("diagnosed.energy", "diagnosed.force", "observed.position"):
        # Forty steps of a contracting descent, each adding a few roundings of coordinates of order 15.
        np.testing.assert_allclose(runs[1][name], runs[0][name], rtol=0, atol=1e-11)


def test_lists_in_lanes_grow_and_resume_bit_for_bit(x64, tmp_path):
    keys, pull = jax.random.split(jax.random.key(1), 5), jnp.array([0.01, 0.3, 0.1, 0.2, 0.05])

    def run(room, store=None, stop=None):
        member = attracted(capacity=room)
        silent = dataclasses.replace(ensemble(member, ["pull"]), observe=lambda state, params: {})
        axes = {"epsilon": None, "sigma": None, "pull": 0}
        inputs = lambda members: ({**member.params, "pull": pull[members]}, keys[members])  # noqa: E731
        queue = Queue(Program.of(silent, PLAN), PLAN, 5, 2, inputs, jax.vmap(member.observe, in_axes=(0, axes)))
        return queue.run(store, StopAfter(stop), pytest.fail)

    with pytest.raises(Stopped):
        run(4, Store(tmp_path), stop=25)
    grown, last = run(4, Store(tmp_path))
    roomy, expected = run(FALLING)
    np.testing.assert_array_equal(last["position"], expected["position"])
    for name in roomy:
        np.testing.assert_array_equal(grown[name], roomy[name])


def test_compiled_convergence_stops_at_an_overflow_and_the_host_enlarges_the_list(x64):
    from simkit.core.converge import converge

    simulation, key = attracted(capacity=4, spread=2.0), jax.random.key(2)
    params = simulation.params
    stopped = jax.jit(lambda p, k: converge(simulation, 4000)(simulation.init(p, k), p))(params, key)
    assert int(stopped.status) == Status.BUFFER_OVERFLOW
    assert int(stopped.iterations) < 100
    larger, result = converge_with_growth(simulation, 4000)(params, key)
    assert int(result.status) == Status.CONVERGED
    _, expected = converge_with_growth(attracted("all_pairs", spread=2.0), 4000)(params, key)
    # A force of 1e-9 left against the pull of stiffness 0.3.
    np.testing.assert_allclose(result.state.position, expected.state.position, rtol=0, atol=1e-8)
    objective = Objective(simulation, "energy", steps=4000)
    # As it is, the objective has no value rather than a wrong one; nearby it has been given room.
    assert bool(jnp.isnan(jax.jit(lambda p, k: objective(p, k))(params, key)))
    value = float(jax.jit(objective.continuation(params, key))(params))
    assert value == pytest.approx(float(larger.diagnose(result.state, params)["energy"]), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_coinciding_particles_are_neighbors_and_no_particle_is_its_own(x64, kind):
    found = neighbor_list.build(jnp.zeros((9, 2)), cell_of(kind, 2, 5.0), 1.0, 8)
    np.testing.assert_array_equal(listed(found), 1 - np.eye(9, dtype=int))


def test_moves_by_lattice_vectors_or_with_the_cell_do_not_rebuild_the_list(x64):
    rng = np.random.default_rng(4)
    cell = cell_of("triclinic", 3, 5.0)
    position = jnp.asarray(rng.uniform(0, 5, (PARTICLES, 3)))
    found = neighbor_list.build(position, cell, 1.2, PARTICLES)
    jumped = position + jnp.asarray(rng.integers(-3, 4, position.shape), float) @ cell
    assert int(neighbor_list.refresh(found, jumped, cell, 1.0, 1.2).builds) == 1
    # A strain of 0.03 |F - 1| = 0.052 shrinks the reach of 1.2 by 0.06, less than the skin of 0.2.
    assert int(neighbor_list.refresh(found, position * 1.03, cell * 1.03, 1.0, 1.2).builds) == 1
    assert int(neighbor_list.refresh(found, position * 0.88, cell * 0.88, 1.0, 1.2).builds) == 2
    assert int(neighbor_list.refresh(found, position, cell, 1.19999, 1.3).builds) == 1
    # A cut-off that outgrows the reach.
    assert int(neighbor_list.refresh(found, position, cell, 1.25, 1.3).builds) == 2


def test_two_particles_may_each_move_by_half_the_skin(x64):
    position = jnp.array([[0.0, 0.0], [1.25, 0.0]])
    found = neighbor_list.build(position, None, 1.2, 2)
    closer = position + jnp.array([[0.13, 0.0], [-0.13, 0.0]])
    assert int(jnp.sum(listed(found))) == 0
    assert int(jnp.sum(listed(neighbor_list.refresh(found, closer, None, 1.0, 1.2)))) == 2


def test_overflow_is_detected_and_stays_set(x64):
    crowded = jnp.asarray(np.random.default_rng(5).uniform(0, 1, (PARTICLES, 2)))
    found = neighbor_list.build(crowded, None, 1.2, 8)
    assert bool(found.overflowed)
    assert int(found.needed) == near(crowded, None, 1.2).sum(axis=1).max()
    later = neighbor_list.refresh(found, 100 * crowded, None, 1.0, 1.2)
    assert int(later.builds) == 2
    assert bool(later.overflowed)
    room = later.enlarged().capacity
    assert room >= int(found.needed)
    assert not bool(neighbor_list.build(crowded, None, 1.2, room).overflowed)


def test_too_many_candidates_count_as_overflow(x64):
    # 1200 particles in one bin, none within reach of another: 38 words of 32 candidates, 32 are kept at most.
    x, y = np.meshgrid(np.arange(40), np.arange(30))
    position = jnp.asarray(np.stack([x, y], -1).reshape(-1, 2) * 1.0)
    cell = jnp.array([40.0, 30.0])
    coarse = neighbor_list.build(position, cell, 14.9, 8)
    assert bool(coarse.overflowed)
    assert not bool(neighbor_list.build(position, cell, 0.9, 8).overflowed)


def walks(members):
    """Return the positions of members that move at different speeds, (T, B, N, 2)."""
    rng = np.random.default_rng(7)
    start = rng.uniform(0, 5, (members, PARTICLES, 2))
    steps = rng.normal(0, 1, (12, members, PARTICLES, 2)) * np.geomspace(1e-3, 0.1, members)[:, None, None]
    return jnp.asarray(start + np.cumsum(steps, axis=0))


def follow(path, cell):
    """Return the list at the end of a path (T, N, 2), refreshed all along."""
    found = neighbor_list.build(path[0], cell, 1.3, PARTICLES)
    return jax.lax.scan(lambda n, x: (neighbor_list.refresh(n, x, cell, 1.0, 1.3), None), found, path)[0]


def test_lists_of_a_batch_equal_single_lists(x64):
    paths = jnp.moveaxis(walks(4), 1, 0)
    cells = 5.0 * jnp.array([[1.0, 1.0], [1.1, 0.9], [1.2, 1.0], [1.0, 1.3]])
    batch = jax.jit(jax.vmap(follow))(paths, cells)
    alone = [jax.jit(follow)(path, cell) for path, cell in zip(paths, cells, strict=True)]
    jax.tree.map(lambda b, *a: np.testing.assert_array_equal(b, np.stack(a)), batch, *alone)
    # Each at its own pace: the slowest not once more, the fastest nearly every step.
    assert int(batch.builds[0]) == 1
    assert int(batch.builds[-1]) > 8
    nested = jax.jit(jax.vmap(jax.vmap(follow, in_axes=(0, None)), in_axes=(0, 0)))(
        paths.reshape(2, 2, *paths.shape[1:]), cells[:2]
    )
    expected = jax.jit(follow)(paths[3], cells[1])
    jax.tree.map(lambda n, e: np.testing.assert_array_equal(n[1, 1], e), nested, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_list_holds_every_pair_within_reach_exactly_once(x64, dimension, kind):
    check_list(dimension, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_is_missed_while_particles_move_and_the_cell_deforms(x64, kind):
    rng = np.random.default_rng(3)
    position, cell, cutoff = rng.uniform(0, 5, (PARTICLES, 2)), cell_of(kind, 2, 5.0), 1.0
    refresh = jax.jit(lambda n, x, c: neighbor_list.refresh(n, x, c, cutoff, 1.3))
    found = jax.jit(lambda x, c: neighbor_list.build(x, c, 1.3, PARTICLES))(jnp.asarray(position), cell)
    for _ in range(60):
        position = position + rng.normal(0, 0.015, position.shape)
        if cell is not None:
            strain = rng.normal(0, 0.002, (2, 2)) * (np.eye(2) if cell.ndim == 1 else 1)
            position = position + position @ strain
            cell = cell + (jnp.diag(jnp.asarray(strain)) * cell if cell.ndim == 1 else cell @ jnp.asarray(strain))
        found = refresh(found, jnp.asarray(position), cell)
        within = near(position, cell, cutoff)
        assert np.all(listed(found)[within] == 1)
    # After n steps of a random walk the furthest of 60 particles has gone about 0.045 sqrt(n); half the skin, 0.15,
    # takes some eleven steps, fewer where the cell deforms.
    assert 3 < int(found.builds) < 30


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


def test_a_particle_that_comes_back_from_nan_is_listed_again(x64):
    position = jnp.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
    found = neighbor_list.build(position, None, 1.2, 2)
    gone = neighbor_list.refresh(found, position.at[2].set(jnp.nan), None, 1.0, 1.2)
    assert int(jnp.sum(listed(gone))) == 2
    assert int(neighbor_list.refresh(gone, position.at[2].set(jnp.nan), None, 1.0, 1.2).builds) == 2
    np.testing.assert_array_equal(
        listed(neighbor_list.refresh(gone, position, None, 1.0, 1.2)), 1 - np.eye(3, dtype=int)
    )
