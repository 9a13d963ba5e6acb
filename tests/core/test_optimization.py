"""Optimization as a simulation, with and without bounds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.bounded import to_bounded, to_unbounded
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.errors import UserError
from tests.core.cases import cases
from tests.core.toys import oscillator

BOUNDS = {"x": (-2.0, 6.0), "y": (-10.0, 10.0)}


def rosenbrock(params, key):
    return (1 - params["x"]) ** 2 + 100 * (params["y"] - params["x"] ** 2) ** 2


def test_no_iterate_leaves_the_bounds_and_an_outside_optimum_is_met_at_the_bound(x64):
    start = {"x": jnp.asarray(3.0)}
    simulation = optimization(lambda params, key: -params["x"], start, ["x"], {"x": (0.0, 4.0)}, tolerance=0.0)
    _, _, diagnostics = trajectory(simulation, 30, 1)(start, jax.random.key(0))
    assert np.all((diagnostics["x"] >= 0) & (diagnostics["x"] <= 4))
    assert diagnostics["x"][-1] > 3.999


def test_maximize_reports_the_objective_with_its_own_sign(x64):
    start = {"x": jnp.asarray(0.5)}
    simulation = optimization(
        lambda params, key: 5 - (params["x"] - 2) ** 2, start, ["x"], {"x": BOUNDS["x"]}, maximize=True
    )
    state = segment(simulation, 50)(simulation.init(start, jax.random.key(0)), start)
    np.testing.assert_allclose(simulation.diagnose(state, start)["best_loss"], 5.0, atol=1e-9)


def test_a_parameter_of_a_simulation_is_recovered_through_its_run(x64):
    member, key = oscillator(), jax.random.key(3)
    objective = Objective(member, "position", 100)
    target = objective({**member.params, "frequency": jnp.asarray(1.7)}, key)
    simulation = optimization(
        lambda params, key: (objective(params, key) - target) ** 2, member.params, ["frequency"], {"frequency": (1, 2)}
    )
    state = jax.jit(segment(simulation, 40))(simulation.init(member.params, key), member.params)
    np.testing.assert_allclose(state.best["frequency"], 1.7, rtol=1e-4)


@pytest.mark.parametrize("method", ["adam", "lbfgs"])
def test_value_and_gradient_belong_to_the_position(x64, method):
    start = {"x": jnp.asarray(-1.2), "y": jnp.asarray(1.0)}
    simulation = optimization(rosenbrock, start, ["x", "y"], BOUNDS, method=method)
    state = jax.jit(segment(simulation, 7))(simulation.init(start, jax.random.key(0)), start)

    def loss(position):
        return rosenbrock(to_bounded(position, BOUNDS), None)

    value, gradient = jax.value_and_grad(loss)(state.position)
    np.testing.assert_allclose(state.value, value, rtol=1e-12)
    for name in "xy":
        np.testing.assert_allclose(state.gradient[name], gradient[name], rtol=1e-9)


def test_bounded_coordinates_invert(x64):
    values = {"x": jnp.asarray([-1.9, 0.0, 5.9]), "free": jnp.asarray(12.0)}
    back = to_bounded(to_unbounded(values, BOUNDS), BOUNDS)
    for name in values:
        np.testing.assert_allclose(back[name], values[name], rtol=1e-12, atol=1e-12)


@cases("bounds", [(-1.0, 3.0), (-1.0, np.inf), (-np.inf, 3.0), (-np.inf, np.inf)])
def test_coordinates_of_any_bounds_invert_and_stay_inside(bounds, x64):
    values = {"x": jnp.asarray([-0.9999, 0.0, 2.5])}
    back = to_bounded(to_unbounded(values, {"x": bounds}), {"x": bounds})
    np.testing.assert_allclose(back["x"], values["x"], rtol=1e-12, atol=1e-12)
    far = to_bounded({"x": jnp.asarray([-50.0, 50.0])}, {"x": bounds})["x"]
    assert (far >= bounds[0]).all() and (far <= bounds[1]).all()


@cases("bounds", [(0.0, 10.0), (0.0, np.inf)])
def test_optimization_with_its_optimum_at_a_bound_converges_there(bounds, x64):
    start = {"x": jnp.asarray(3.0)}
    simulation = optimization(lambda params, key: params["x"] + 1.0, start, ["x"], {"x": bounds})
    state = jax.jit(segment(simulation, 200))(simulation.init(start, jax.random.key(0)), start)
    assert simulation.status(state, start) == Status.CONVERGED and float(state.best["x"]) < 1e-3
    assert simulation.observe(state, start)["bound_x"] == -1


@cases(
    ("value", "bounds", "start"),
    [
        (0.0015, (0.001, 1000.0), 0.0015),
        (4.0, (0.0, 1e7), 4.0),
        (0.0, (0.0, 10.0), 0.1),
        (10.0, (0.0, 10.0), 9.9),
        (1e-9, (0.0, math.inf), 1e-9),
        (3.0, (3.0, math.inf), 3.01),
        (999.9985, (0.001, 1000.0), 999.9985),
    ],
)
@cases("wide", [False, True])
def test_a_start_near_a_bound_is_kept_and_a_start_at_a_bound_is_moved(value, bounds, start, wide):
    with jax.enable_x64(wide):
        limits = {"x": bounds}
        found = to_bounded(to_unbounded({"x": jnp.asarray(value, dtype=float)}, limits), limits)["x"]
        assert float(found) == pytest.approx(start, rel=1e-5)


def test_a_learning_rate_without_effect_is_refused():
    with pytest.raises(UserError, match="learning_rate= is for adam; lbfgs chooses its own steps"):
        optimization(rosenbrock, {"x": jnp.float32(0), "y": jnp.float32(0)}, ["x"], BOUNDS, learning_rate=0.1)
