"""Convergence, members in flight, and buffers: a run whose buffer overflows equals the run with a large one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.buffers import Buffer
from simkit.core.converge import converge
from simkit.core.objective import Objective
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status, converged_when, status_of
from simkit.engine.driver import Plan
from tests.core.toys import descent
from tests.driving import drive


def test_converge_reports_when_its_steps_run_out(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    assert converge(simulation, 3)(state, simulation.params).status == Status.MAX_STEPS


def test_converge_stops_at_once_on_a_non_finite_state(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    result = converge(simulation, 1000)(state, {**simulation.params, "stiffness": jnp.asarray(jnp.nan)})
    assert result.status == Status.NON_FINITE
    assert result.iterations == 1


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_residual_that_leaves_out_unknowns_does_not_hide_a_missing_solution(mode, x64):
    # As a packing far from rest: every particle counts as loose, and a cotangent of NaN is masked with its force.
    def residual(x, params):
        return jnp.where(jnp.array([True, True]), x - jax.lax.stop_gradient(x), x - params["pull"])

    simulation = Simulation(
        init=lambda params, key: jnp.zeros(2),
        step=lambda state, params: state + 1,
        observe=lambda state, params: {"x": state},
        diagnose=lambda state, params: {"iteration": jnp.int32(0), "work": (params["pull"] * state).sum()},
        params={"pull": jnp.asarray(1.0)},
        status=converged_when(lambda state, params: jnp.bool_(False)),
        converges=True,
        equilibrium=Equilibrium(unknowns=lambda state: state, residual=residual, replace=lambda state, x: x),
    )
    derivative = gradient.with_derivative(Objective(simulation, "work", 3), ["pull"], mode=mode)
    assert np.isnan(derivative(simulation.params, jax.random.key(0))[1]["pull"])


PLAN = Plan(steps=200, every=5)


@pytree
class Passages(Buffer):
    """Times of passage through zero, filled from the front."""

    times: jax.Array
    needed: jax.Array

    @property
    def capacity(self):
        return self.times.shape[-1]

    def resized(self, capacity):
        unused = [(0, 0)] * (self.times.ndim - 1) + [(0, capacity - self.capacity)]
        return dataclasses.replace(self, times=jnp.pad(self.times, unused))


@pytree
class Swing:
    angle: jax.Array
    passages: Passages
    time: jax.Array


def swing(capacity=1, early=0):
    """An angle cos(w t) that notes when it passes zero; ``early`` passages are there from the start."""

    def init(params, key):
        zero = jnp.zeros_like(params["frequency"])
        passages = Passages(times=jnp.zeros(capacity, zero.dtype), needed=jnp.int32(early))
        return Swing(angle=jnp.ones_like(zero), passages=passages, time=zero)

    def step(state, params):
        time = state.time + params["time_step"]
        angle, seen = jnp.cos(params["frequency"] * time), state.passages
        passes = (angle < 0) != (state.angle < 0)
        times = jnp.where(passes, seen.times.at[seen.needed].set(time, mode="drop"), seen.times)
        passages = Passages(times=times, needed=seen.needed + passes)
        return Swing(angle=angle, passages=passages, time=time)

    def diagnose(state, params):
        return {"time": state.time, "sum": jnp.sum(state.passages.times), "passages": state.passages.needed}

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"angle": state.angle[None]},
        diagnose=diagnose,
        params={"frequency": 4.0, "time_step": 0.1},
        sized_like=lambda state: swing(state.passages.capacity, early),
    )


def recorded(simulation, key=None, store=None, stop=None, params=None):
    key = jax.random.key(0) if key is None else key
    pieces = []
    for piece in drive(simulation, params or simulation.params, key, PLAN, store=store):
        pieces.append(piece)
        if piece.index == stop:
            break
    return {name: np.concatenate([p.arrays[name] for p in pieces]) for name in pieces[0].arrays}, pieces


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_an_initial_state_that_overflows_is_repeated_with_larger_buffers(x64):
    _, pieces = recorded(swing(early=3), stop=1)
    assert pieces[0].state.passages.capacity >= 3
    assert (pieces[0].status == Status.OK).all()


def test_without_a_driver_an_overflow_stops_the_run(x64):
    simulation = swing()
    status = jax.jit(status_of(simulation))
    start = simulation.init(simulation.params, jax.random.key(0))
    end = segment(simulation, 200)(start, simulation.params)
    assert int(status(start, simulation.params)) == Status.OK
    assert int(status(end, simulation.params)) == Status.BUFFER_OVERFLOW
    watched = dataclasses.replace(simulation, status=lambda state, params: jnp.int32(Status.OK))
    assert int(segment(watched, 200)(start, simulation.params).passages.needed) == 2


def test_an_overflow_status_without_an_overflowed_buffer_ends_the_run(x64):
    told = dataclasses.replace(swing(8), status=lambda state, params: jnp.int32(Status.BUFFER_OVERFLOW))
    _, pieces = recorded(told)
    assert pieces[-1].finished
    assert pieces[-1].status == Status.BUFFER_OVERFLOW


@pytree
class Search:
    x: jax.Array
    trials: Passages
    iteration: jax.Array


def search(capacity=2):
    """Halve the distance to a target again and again; every trial is noted."""

    def init(params, key):
        zero = jnp.zeros_like(params["target"])
        trials = Passages(times=jnp.zeros(capacity, zero.dtype), needed=jnp.int32(0))
        return Search(x=zero, trials=trials, iteration=jnp.int32(0))

    def step(state, params):
        x, trials = (state.x + params["target"]) / 2, state.trials
        times = trials.times.at[trials.needed].set(x, mode="drop")
        return Search(x=x, trials=Passages(times=times, needed=trials.needed + 1), iteration=state.iteration + 1)

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"x": state.x[None]},
        diagnose=lambda state, params: {"iteration": state.iteration, "x": state.x},
        params={"target": 1.0},
        converges=True,
        status=converged_when(lambda state, params: jnp.abs(state.x - params["target"]) < 1e-6),
        equilibrium=Equilibrium(
            unknowns=lambda state: state.x,
            residual=lambda x, params: x - params["target"],
            replace=lambda state, x: dataclasses.replace(state, x=x),
        ),
        sized_like=lambda state: search(state.trials.capacity),
    )
