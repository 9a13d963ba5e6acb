"""Runs: memory, segments, stops, ensembles, means over time, and precision."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient, rollout
from simkit.core.averages import averaged
from simkit.core.converge import converge
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.precision import in_precision_of
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status, status_of
from simkit.engine.driver import Plan
from tests.core.test_derivatives import compiled_size
from tests.core.test_rollout import EVERY, KEY, SKIP, STEPS, STOP_KEY, VALUES, mean_oscillator
from tests.core.toys import oscillator, stepping_together
from tests.driving import drive
from tests.molecular.packings import packing
from tests.tables import every


def test_smallest_reverse_mode_memory_grows_like_the_logarithm_of_the_steps():
    # log(10000) / log(100) = 2, plus the rounding of the number of levels.
    assert compiled_size(10_000, "smallest") <= 3 * compiled_size(100, "smallest")
    assert compiled_size(10_000, "smallest") <= compiled_size(10_000, "balanced")


@pytest.mark.parametrize("memory", ["balanced", "smallest"])
@pytest.mark.parametrize("little", [0, rollout.SMALL_BYTES])
def test_rematerialization_does_not_change_the_derivative(x64, memory, little, monkeypatch):
    monkeypatch.setattr(rollout, "SMALL_BYTES", little)
    simulation, key = oscillator(), jax.random.key(KEY)

    def plain(params):
        state = simulation.init(params, key)
        for _ in range(30):
            state = simulation.step(state, params)
        return simulation.diagnose(state, params)["energy"]

    expected = jax.grad(plain)(simulation.params)
    found = jax.grad(Objective(simulation, "energy", 30, memory=memory))(simulation.params, key)
    for name in expected:
        # Same operations in another order of accumulation: round-off of a sum of 30 terms.
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@every(
    ("steps", "memory"),
    [(1, "smallest"), (7, "balanced"), (12, "smallest"), (97, "balanced"), (100, "smallest"), (1000, "balanced")],
)
def test_trajectory_equals_a_host_loop_over_segments_bit_for_bit(steps, memory, monkeypatch):
    monkeypatch.setattr(rollout, "SMALL_BYTES", 0)
    simulation, key = oscillator(), jax.random.key(KEY)
    every = next(e for e in (10, 4, 1) if steps % e == 0)
    state, frames, diagnostics = jax.jit(trajectory(simulation, steps, every, memory=memory))(simulation.params, key)

    advance = jax.jit(segment(simulation, every))
    looped = jax.jit(simulation.init)(simulation.params, key)
    positions = [looped.position]
    for _ in range(steps // every):
        looped = advance(looped, simulation.params)
        positions.append(looped.position)
    assert equal((state.position, state.velocity, state.time), (looped.position, looped.velocity, looped.time))
    assert np.array_equal(frames["position"], np.stack(positions))
    assert diagnostics["time"].shape == (steps // every + 1,)


def test_reverse_mode_memory_grows_like_the_square_root_of_the_steps():
    # sqrt(10000 / 100) = 10; 12 allows for memory that does not depend on the number of steps.
    assert compiled_size(10_000, "balanced") <= 12 * compiled_size(100, "balanced")


def test_a_stalled_relaxation_ends_at_the_same_iteration_in_every_driver():
    from tests.molecular.clusters import cluster

    # Single precision cannot bring the force below some 1e-5.
    simulation, steps = cluster(particles=7, force_tolerance=1e-12), 2000
    params, key = simulation.params, jax.random.key(STOP_KEY)
    start = jax.jit(simulation.init)(params, key)
    last = jax.jit(trajectory(simulation, steps, 100))(params, key)[0]
    driven = list(drive(simulation, params, key, Plan(steps, 20)))[-1].state
    converged = jax.jit(converge(simulation, steps))(start, params)
    assert int(converged.status) == Status.STALLED
    iterations = int(converged.iterations)
    assert iterations < steps
    for state in (last, driven, converged.state):
        assert int(state.descent.iteration) == iterations
        np.testing.assert_array_equal(state.descent.position, last.descent.position)
    # A batch of one may be rounded in another way; each of the two that are batched ends when it has stalled.
    keys = jnp.stack([key, jax.random.key(STOP_KEY + 1)])
    states = jax.jit(jax.vmap(simulation.init, (None, 0)))(params, keys)
    together = jax.jit(segment(ensemble(simulation), steps))(states, params)
    np.testing.assert_array_equal(status_of(ensemble(simulation))(together, params), Status.STALLED)
    assert (together.descent.iteration < steps).all()


def counter(*codes):
    """Counts its steps; its status is the code whose turn it is."""

    def status(state, params):
        return jnp.asarray(codes, jnp.int32)[jnp.minimum(state["steps"], len(codes) - 1)]

    return dataclasses.replace(
        oscillator(),
        init=lambda params, key: {"steps": jnp.int32(0), "value": params["frequency"]},
        step=lambda state, params: {"steps": state["steps"] + 1, "value": state["value"] * 1.01},
        observe=lambda state, params: {"position": state["value"][None]},
        diagnose=lambda state, params: {"time": state["value"], "steps": state["steps"]},
        status=status,
    )


def ends(simulation, every):
    """Return the last state of every way to run a simulation, one after the other."""
    params, key = simulation.params, jax.random.key(STOP_KEY)
    state = simulation.init(params, key)
    yield jax.jit(trajectory(simulation, STEPS, every))(params, key)[0]
    yield jax.jit(segment(simulation, STEPS))(state, params)
    yield list(drive(simulation, params, key, Plan(STEPS, every)))[-1].state
    many, keys = ensemble(simulation), jnp.stack([key, key])
    for last in (
        jax.jit(trajectory(many, STEPS, every))(params, keys)[0],
        list(drive(many, params, keys, Plan(STEPS, every)))[-1].state,
    ):
        yield jax.tree.map(lambda leaf: leaf[0], last)


@every(
    ("code", "every"),
    [(Status.CONVERGED, 1), (Status.STALLED, 8), (Status.IMPACT_OVERFLOW, 40), (Status.BUFFER_OVERFLOW, 8)],
)
def test_a_status_that_stops_holds_the_state_at_that_step(code, every):
    simulation = counter(*[Status.OK] * 7, code, Status.OK)
    states = list(ends(simulation, every))
    assert [int(state["steps"]) for state in states] == [7] * len(states)
    assert len({float(state["value"]) for state in states}) == 1


@every("every", [8])
def test_a_caution_does_not_stop(every):
    simulation = counter(Status.OK, Status.OK, Status.BRIEF_CONTACT)
    assert [int(state["steps"]) for state in ends(simulation, every)] == [STEPS] * 5
    pieces = list(drive(simulation, simulation.params, jax.random.key(STOP_KEY), Plan(STEPS, every)))
    assert sum(len(piece.arrays["status"]) for piece in pieces) == STEPS // every + 1


@pytest.mark.parametrize("over", [(), ("frequency",), ("time_step",), ("frequency", "time_step")])
def test_an_ensemble_over_any_subset_of_params_equals_a_loop(x64, over):
    simulation = oscillator()
    keys = jax.random.split(jax.random.key(0), 3)
    params = {**simulation.params, **{name: jnp.asarray(VALUES[name]) for name in over}}
    state, frames, diagnostics = jax.jit(trajectory(ensemble(simulation, over), 50, 10))(params, keys)
    run = jax.jit(trajectory(simulation, 50, 10))
    for i in range(3):
        alone = run({**simulation.params, **{name: jnp.asarray(VALUES[name][i]) for name in over}}, keys[i])
        # Round-off of 50 steps in float64.
        np.testing.assert_allclose(state.position[i], alone[0].position, rtol=1e-12)
        np.testing.assert_allclose(frames["position"][:, i], alone[1]["position"], rtol=1e-12)
        np.testing.assert_allclose(diagnostics["energy"][:, i], alone[2]["energy"], rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: averaged(x, lambda s, p: {"x": s.time}, every=2, skip=0)])
def test_an_ensemble_steps_its_members_together_also_of_averages(x64, wrap):
    calls, keys = [], jax.random.split(jax.random.key(0), 3)
    ends = []
    for member in (wrap(stepping_together(calls)), wrap(oscillator())):
        many = ensemble(member, ["frequency"])
        params = {**many.params, "frequency": jnp.asarray(VALUES["frequency"])}
        ends.append(segment(many, 20)(many.init(params, keys), params))
    assert calls and all(sizes == {3} for sizes in calls)
    # The same operations in another program: round-off of 40 steps.
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12),
        *(dataclasses.replace(end, key=0) if hasattr(end, "key") else (end.mean, end.taken) for end in ends),
    )


def test_means_are_those_of_the_samples_after_the_skipped_ones(x64):
    simulation, plain, samples, key = mean_oscillator(), oscillator(2), 20, jax.random.key(0)
    _, frames, found = jax.jit(trajectory(simulation, samples, 1))(simulation.params, key)
    _, positions, expected = jax.jit(trajectory(plain, samples * EVERY, EVERY))(plain.params, key)
    np.testing.assert_allclose(found["time"], expected["time"], rtol=1e-13)
    np.testing.assert_allclose(frames["position"], positions["position"], rtol=0, atol=1e-13)
    squares = np.asarray(positions["position"])[:, 0] ** 2 * 1.3
    # A mean of no samples is NaN, in diagnostics and in observed arrays; the state stays finite.
    assert np.isnan(found["mean_square"][: SKIP + 1]).all() and np.isnan(frames["mean_position"][: SKIP + 1]).all()
    for number in range(SKIP + 1, samples + 1):
        mean = squares[SKIP + 1 : number + 1].mean()
        assert float(found["mean_square"][number]) == pytest.approx(mean, rel=1e-12)
    last = np.asarray(positions["position"])[SKIP + 1 :].mean(axis=0)
    np.testing.assert_allclose(frames["mean_position"][-1], last, rtol=0, atol=1e-13)
    assert simulation.dimensions["mean_position"] == ("oscillator",)
    assert list(simulation.coordinates["oscillator"]) == [0, 1]


def test_derivative_of_a_mean_equals_its_central_difference(x64):
    objective = Objective(mean_oscillator(), "mean_square", steps=12)
    found = gradient.check_gradient(
        objective, objective.simulation.params, jax.random.key(3), ["frequency", "time_step"]
    )
    for name, difference in found.relative_difference.items():
        assert abs(found.derivative[name]) > 1e-3
        assert difference < 1e-6, name


def relaxed(start, tolerance):
    simulation = packing(particles=16, force_tolerance=tolerance)
    state = start(simulation)
    return simulation, state, jax.jit(converge(simulation, 20_000))(state, simulation.params)


def test_float64_continues_a_relaxation_of_float32():
    with jax.enable_x64(False):
        _, _, rough = relaxed(lambda simulation: simulation.init(simulation.params, jax.random.key(0)), 1e-4)
    assert rough.status == Status.CONVERGED
    with jax.enable_x64(True):
        simulation, start, fine = relaxed(lambda simulation: in_precision_of(simulation, rough.state), 1e-12)
        _, _, whole = relaxed(lambda simulation: simulation.init(simulation.params, jax.random.key(0)), 1e-12)
        assert fine.status == Status.CONVERGED
        fresh = simulation.init(simulation.params, jax.random.key(0))
        assert jax.tree.map(lambda leaf: leaf.dtype, start) == jax.tree.map(lambda leaf: leaf.dtype, fresh)
        # The polish takes fewer iterations than the whole way, and the minimum is the one above which float32 stopped.
        assert int(fine.iterations) < int(whole.iterations)
        found, above = (simulation.diagnose(state, simulation.params) for state in (fine.state, start))
        assert float(found["max_force"]) < 1e-12
        # Forces of 1e-4 on 16 disks give f^2 / (2 lambda) each, against modes no softer than lambda = 1e-3.
        assert 0 <= float(above["energy"] - found["energy"]) < 16 * 1e-8 / 2e-3


def test_state_of_another_simulation_is_refused(x64):
    simulation = packing(particles=16)
    with pytest.raises(ValueError, match="pytree"):
        in_precision_of(simulation, {"position": 0.0})
