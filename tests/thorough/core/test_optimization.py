"""Optimization as a simulation, with and without bounds, the longer ones."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from tests.core.test_optimization import BOUNDS, rosenbrock
from tests.core.toys import oscillator
from tests.tables import every


@pytest.mark.parametrize(("method", "steps", "error"), [("lbfgs", 100, 1e-5), ("adam", 5000, 1e-2)])
def test_optimizers_find_the_minimum_of_rosenbrock(x64, method, steps, error):
    start = {"x": jnp.asarray(-1.2), "y": jnp.asarray(1.0)}
    simulation = optimization(rosenbrock, start, ["x", "y"], BOUNDS, method=method)
    state = jax.jit(segment(simulation, steps))(simulation.init(start, jax.random.key(0)), start)
    # The minimum is (1, 1). L-BFGS converges to its gradient tolerance; Adam at a fixed rate hovers near it.
    assert abs(state.best["x"] - 1) < error
    assert abs(state.best["y"] - 1) < error


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (0.0, np.inf), (-np.inf, 0.0), (-10.0, 0.0)])
def test_optimization_that_begins_at_a_bound_leaves_it(bounds, x64):
    inside = 2.0 if bounds[0] == 0 else -2.0
    start = {"x": jnp.asarray(0.0)}
    simulation = optimization(lambda params, key: 0.01 * (params["x"] - inside) ** 2, start, ["x"], {"x": bounds})
    state = jax.jit(segment(simulation, 60))(simulation.init(start, jax.random.key(0)), start)
    assert float(state.best["x"]) == pytest.approx(inside, rel=1e-3)


@pytest.mark.parametrize(
    ("bounds", "wanted", "side"),
    [
        ((0.0, 10.0), -1.0, -1),
        ((0.0, 10.0), 12.0, 1),
        # Near a bound, of a wide interval, and not held by it.
        ((0.0, 1000.0), 4.0, 0),
        ((-np.inf, 0.0), 1.0, 1),
    ],
)
def test_bound_that_holds_the_best_value_is_named(bounds, wanted, side, x64):
    start = {"x": jnp.asarray([1.0 if bounds[0] == 0 else -1.0, 1.0 if bounds[0] == 0 else -1.0])}
    # The second entry is free: its best value is inside.
    inside = 2.0 if bounds[0] == 0 else -2.0
    target = jnp.asarray([wanted, inside])
    simulation = optimization(lambda params, key: jnp.sum((params["x"] - target) ** 2), start, ["x"], {"x": bounds})
    state = jax.jit(segment(simulation, 100))(simulation.init(start, jax.random.key(0)), start)
    assert simulation.observe(state, start)["bound_x"].tolist() == [side, 0]


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
@pytest.mark.parametrize("begin", [0.5, 100.0, 1e6])
@pytest.mark.parametrize(
    ("bounds", "wide"),
    [
        ((0.0, 1e7), False),
        ((0.0, 1e7), True),
        ((0.0, math.inf), False),
        ((0.0, math.inf), True),
        # In float32, numbers that are found as parts of 1e7 from -1e7 on are 1 apart.
        ((-1e7, 3.5), True),
    ],
)
def test_optimum_inside_of_wide_bounds_has_no_active_bound(bounds, begin, method, wide):
    with jax.enable_x64(wide):
        begin = begin if bounds[0] == 0 else 3.5 - begin
        start = {"x": jnp.asarray(begin, dtype=float)}
        simulation = optimization(
            lambda params, key: (params["x"] - 3.3) ** 2, start, ["x"], {"x": bounds}, method=method
        )
        state = jax.jit(segment(simulation, 200))(simulation.init(start, jax.random.key(0)), start)
        assert simulation.observe(state, start)["bound_x"] == 0


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bounds", [(0.0, 1e7), (-1e7, 3.5), (0.0, math.inf), (1000.0, 1e7)])
@pytest.mark.parametrize("power", [1, 2])
def test_optimum_outside_of_wide_bounds_has_an_active_bound(bounds, power, wide):
    with jax.enable_x64(wide):
        low, high = bounds
        begin, side = (low + 4.0, -1) if low >= 0 else (high - 4.0, 1)
        start = {"x": jnp.asarray(begin, dtype=float)}

        def loss(params, key):
            return (-side * (params["x"] - begin) + 5.0) ** power

        simulation = optimization(loss, start, ["x"], {"x": bounds})
        state = jax.jit(segment(simulation, 100))(simulation.init(start, jax.random.key(0)), start)
        assert simulation.observe(state, start)["bound_x"] == side


@every("slope", [0.2, 3.0])
def test_an_objective_that_falls_for_ever_does_not_converge(slope, x64):
    start = {"x": jnp.asarray(1.0)}
    simulation = optimization(lambda params, key: -slope * params["x"], start, ["x"], {})
    state = jax.jit(segment(simulation, 40))(simulation.init(start, jax.random.key(0)), start)
    assert state.value < -1e6 * slope
    assert int(simulation.status(state, start)) == Status.OK


def test_no_iterate_leaves_the_bounds_and_an_outside_optimum_is_met_at_the_bound(x64):
    start = {"x": jnp.asarray(3.0)}
    simulation = optimization(lambda params, key: -params["x"], start, ["x"], {"x": (0.0, 4.0)}, tolerance=0.0)
    _, _, diagnostics = trajectory(simulation, 30, 1)(start, jax.random.key(0))
    assert np.all((diagnostics["x"] >= 0) & (diagnostics["x"] <= 4))
    assert diagnostics["x"][-1] > 3.999


def test_a_parameter_of_a_simulation_is_recovered_through_its_run(x64):
    member, key = oscillator(), jax.random.key(3)
    objective = Objective(member, "position", 100)
    target = objective({**member.params, "frequency": jnp.asarray(1.7)}, key)
    simulation = optimization(
        lambda params, key: (objective(params, key) - target) ** 2, member.params, ["frequency"], {"frequency": (1, 2)}
    )
    state = jax.jit(segment(simulation, 40))(simulation.init(member.params, key), member.params)
    np.testing.assert_allclose(state.best["frequency"], 1.7, rtol=1e-4)


@every("bounds", [(0.0, 10.0), (0.0, np.inf)])
def test_optimization_with_its_optimum_at_a_bound_converges_there(bounds, x64):
    start = {"x": jnp.asarray(3.0)}
    simulation = optimization(lambda params, key: params["x"] + 1.0, start, ["x"], {"x": bounds})
    state = jax.jit(segment(simulation, 200))(simulation.init(start, jax.random.key(0)), start)
    assert simulation.status(state, start) == Status.CONVERGED and float(state.best["x"]) < 1e-3
    assert simulation.observe(state, start)["bound_x"] == -1
