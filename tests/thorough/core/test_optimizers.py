"""Optimizers and optimizations."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.optimizers.levenberg_marquardt import SumOfSquares
from simkit.core.optimizers.methods import METHODS
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.errors import UserError
from tests.core.test_optimizers import BOUNDS, decay, ended, needs_evosax, rosenbrock, start_at
from tests.core.toys import oscillator
from tests.tables import every


@pytest.mark.parametrize(("method", "steps", "error"), [("lbfgs", 100, 1e-5), ("adam", 5000, 1e-2)])
def test_optimizers_find_the_minimum_of_rosenbrock(x64, method, steps, error):
    _, state, _ = ended(rosenbrock, start_at(-1.2, 1.0), steps, BOUNDS, method=method)
    # The minimum is (1, 1). L-BFGS converges to its gradient tolerance; Adam at a fixed rate hovers near it.
    assert abs(state.best["x"] - 1) < error
    assert abs(state.best["y"] - 1) < error


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (0.0, np.inf), (-np.inf, 0.0), (-10.0, 0.0)])
def test_optimization_that_begins_at_a_bound_leaves_it(bounds, x64):
    inside = 2.0 if bounds[0] == 0 else -2.0
    _, state, _ = ended(lambda p, key: 0.01 * (p["x"] - inside) ** 2, start_at(0.0), 60, {"x": bounds})
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
    sign = 1.0 if bounds[0] == 0 else -1.0
    start = {"x": jnp.asarray([sign, sign])}
    # The second entry is free: its best value is inside.
    target = jnp.asarray([wanted, 2 * sign])
    simulation, state, _ = ended(lambda p, key: jnp.sum((p["x"] - target) ** 2), start, 100, {"x": bounds})
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
        start = start_at(begin if bounds[0] == 0 else 3.5 - begin)
        simulation, state, _ = ended(lambda p, key: (p["x"] - 3.3) ** 2, start, 200, {"x": bounds}, method=method)
        assert simulation.observe(state, start)["bound_x"] == 0


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bounds", [(0.0, 1e7), (-1e7, 3.5), (0.0, math.inf), (1000.0, 1e7)])
@pytest.mark.parametrize("power", [1, 2])
def test_optimum_outside_of_wide_bounds_has_an_active_bound(bounds, power, wide):
    with jax.enable_x64(wide):
        low, high = bounds
        begin, side = (low + 4.0, -1) if low >= 0 else (high - 4.0, 1)
        start = start_at(begin)
        simulation, state, _ = ended(
            lambda p, key: (-side * (p["x"] - begin) + 5.0) ** power, start, 100, {"x": bounds}
        )
        assert simulation.observe(state, start)["bound_x"] == side


@every("slope", [0.2, 3.0])
def test_an_objective_that_falls_for_ever_does_not_converge(slope, x64):
    _, state, status = ended(lambda params, key: -slope * params["x"], start_at(1.0), 40)
    assert state.value < -1e6 * slope
    assert status == Status.OK


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
    simulation, state, status = ended(lambda params, key: params["x"] + 1.0, start_at(3.0), 200, {"x": bounds})
    assert status == Status.CONVERGED and float(state.best["x"]) < 1e-3
    assert simulation.observe(state, start_at(3.0))["bound_x"] == -1


@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("bounds", [{}, BOUNDS], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("maximize", [False, True], ids=["minimize", "maximize"])
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_optimum_in_every_combination(method, several, maximize, bounds, wide):
    needs_evosax(method)
    with jax.enable_x64(wide):
        start = start_at(0.5, 2.5)
        squares = SumOfSquares(lambda params, key: jnp.stack([params["x"] - 1, 0.5 * (params["y"] - 2)]))
        objective = (lambda params, key: 3 - squares(params, key)) if maximize else squares
        if maximize and method == "levenberg_marquardt":
            with pytest.raises(UserError, match=r"levenberg_marquardt minimizes sums of squares"):
                optimization(objective, start, ["x", "y"], bounds, method=method, maximize=True)
            return
        simulation = optimization(objective, start, ["x", "y"], bounds, method=method, maximize=maximize)
        key = jax.random.key(0)
        if several:
            simulation, key = ensemble(simulation, ["x", "y"]), jax.random.split(key, 3)
            start = {"x": jnp.asarray([0.5, 1.5, 0.0]), "y": jnp.asarray([2.5, 1.0, 4.0])}
        state = jax.jit(segment(simulation, 300))(simulation.init(start, key), start)
        # Adam hovers around the optimum; in float32, the sum of squares does not resolve distances below 3e-4.
        np.testing.assert_allclose(state.best["x"], 1.0, atol=1e-2 if method == "adam" else 1e-3)
        np.testing.assert_allclose(state.best["y"], 2.0, atol=1e-2 if method == "adam" else 1e-3)
        np.testing.assert_allclose(simulation.diagnose(state, start)["best_loss"], 3 if maximize else 0, atol=1e-4)
        assert {name: array.dtype for name, array in state.best.items()} == dict.fromkeys("xy", start["x"].dtype)
        if method != "adam":
            assert np.all(np.isin(simulation.status(state, start), [Status.CONVERGED, Status.STALLED]))


def test_levenberg_marquardt_agrees_with_scipy(x64):
    start = {"a": jnp.asarray(1.0), "k": jnp.asarray(0.1), "w": jnp.asarray(1.2)}
    _, state, status = ended(SumOfSquares(decay), start, 50, method="levenberg_marquardt", tolerance=1e-9)
    names = sorted(start)
    reference = least_squares(
        lambda p: np.asarray(decay(dict(zip(names, p, strict=True)), None)),
        [float(start[name]) for name in names],
        method="lm",
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    assert status == Status.CONVERGED
    np.testing.assert_allclose([state.best[name] for name in names], reference.x, rtol=1e-7)
    # The minimized number is the sum of squares; that of SciPy is half of it.
    np.testing.assert_allclose(state.best_value, 2 * reference.cost, rtol=1e-12)


def test_levenberg_marquardt_takes_far_fewer_updates_than_lbfgs(x64):
    t = jnp.linspace(0, 5, 40)

    def two_rates(params, key):
        model = params["a"] * jnp.exp(-params["k"] * t) + params["b"] * jnp.exp(-params["w"] * t)
        return model - 2 * jnp.exp(-0.3 * t) - jnp.exp(-2 * t)

    start = {name: jnp.asarray(value) for name, value in {"a": 1.0, "b": 0.5, "k": 0.5, "w": 1.0}.items()}
    updates = {}
    for method in ("lbfgs", "levenberg_marquardt"):
        _, state, status = ended(SumOfSquares(two_rates), start, 200, method=method, tolerance=1e-8)
        assert status == Status.CONVERGED
        np.testing.assert_allclose([state.best[name] for name in start], [2, 1, 0.3, 2], rtol=1e-6)
        updates[method] = int(state.iteration)
    assert updates["levenberg_marquardt"] < 0.6 * updates["lbfgs"]


def test_cma_es_takes_the_evaluations_of_the_reference_implementation(x64):
    pytest.importorskip("evosax")
    start = {"z": jnp.ones(5)}
    scales = 10.0 ** (6 * jnp.arange(5) / 4)
    simulation = optimization(lambda params, key: jnp.sum(scales * params["z"] ** 2), start, ["z"], {}, method="cma_es")
    counts = []
    for seed in range(5):
        _, _, diagnostics = trajectory(simulation, 300, 1)(start, jax.random.key(seed))
        assert diagnostics["best_loss"][-1] <= 1e-8
        counts.append(8 * int(np.argmax(diagnostics["best_loss"] <= 1e-8)))
    # pycma 4.5 takes 1,392 to 1,624 evaluations to 1e-8 on this ellipsoid, from a standard deviation of 0.5; a first
    # one of 1 adds about ln(2) (damping / cumulation rate), that is 20 %.
    assert 1200 < np.median(counts) < 2000


def test_cma_es_optimizes_what_has_no_derivative(x64):
    pytest.importorskip("evosax")
    start = start_at(4.5, -7.0)

    def steps(params, key):
        """Rounded up, so that its derivative is zero everywhere; lowest where |x - 1| and |y - 2| are below 0.1."""
        return jnp.ceil(10 * jnp.abs(params["x"] - 1)) + jnp.ceil(10 * jnp.abs(params["y"] - 2))

    _, by_gradient, _ = ended(steps, start, 100, BOUNDS)
    assert by_gradient.best_value == by_gradient.value == steps(start, None)
    _, state, status = ended(steps, start, 200, BOUNDS, method="cma_es")
    assert status == Status.CONVERGED and float(state.best_value) == 2


def test_samples_that_are_not_finite_count_as_the_worst(x64):
    pytest.importorskip("evosax")
    start = start_at(0.5)

    def half(params, key):
        return jnp.where(params["x"] < 0, jnp.nan, (params["x"] - 0.1) ** 2)

    _, state, status = ended(half, start, 200, method="cma_es")
    assert status == Status.CONVERGED and float(state.best["x"]) == pytest.approx(0.1, abs=1e-6)
    nowhere = ended(lambda params, key: jnp.where(params["x"] == 0.5, 1.0, jnp.nan), start, 5, method="cma_es")
    assert nowhere[2] == Status.NON_FINITE


def test_samples_of_cma_es_stay_within_the_bounds(x64):
    pytest.importorskip("evosax")
    start = start_at(3.0)
    simulation = optimization(lambda params, key: -params["x"], start, ["x"], {"x": (0.0, 4.0)}, method="cma_es")
    _, _, diagnostics = trajectory(simulation, 40, 1)(start, jax.random.key(0))
    assert np.all((diagnostics["x"] >= 0) & (diagnostics["x"] <= 4)) and diagnostics["x"][-1] > 3.999
    simulation, state, status = ended(lambda params, key: -params["x"], start, 100, {"x": (0.0, 4.0)}, method="cma_es")
    assert status == Status.CONVERGED and simulation.observe(state, start)["bound_x"] == 1


@pytest.mark.parametrize("method", ["lbfgs", "levenberg_marquardt"])
@pytest.mark.parametrize("bounds", [(0.0, 10.0), (0.0, math.inf)])
def test_an_optimization_that_float32_takes_no_further_stops(bounds, method):
    start = {"x": jnp.float32(3.0)}
    # Near 1e4, float32 resolves 1e-3; what leads to the bound is below that long before the gradient vanishes.
    squares = SumOfSquares(lambda params, key: params["x"] + 100)
    simulation, state, status = ended(squares, start, 200, {"x": bounds}, method=method, tolerance=1e-9)
    assert status == (Status.STALLED if method == "lbfgs" else Status.CONVERGED) and int(state.iteration) < 40
    assert simulation.observe(state, start)["bound_x"] == -1


def test_lbfgs_recovers_from_a_search_that_ends_at_negative_curvature(x64):
    # A function of small slope, concave at the start, that is not defined beyond the minimum: a doubled first step of
    # 5e-6 ends after 20 doublings at 4997, and the direction of negative curvature leads uphill.
    def objective(params, key):
        a = params["a"]
        return jnp.where(a > 3000, 0.01 * jnp.tanh((a - 3782) / 1000) ** 2, -jnp.inf)

    simulation, state, status = ended(objective, {"a": jnp.asarray(5000.0)}, 40)
    assert status == Status.CONVERGED
    assert float(state.best["a"]) == pytest.approx(3782, rel=1e-3)
    losses = [0.01 * np.tanh((5000 - 3782) / 1000) ** 2]
    state = simulation.init(simulation.params, jax.random.key(0))
    for _ in range(8):
        state = jax.jit(simulation.step)(state, simulation.params)
        losses.append(float(state.value))
    assert losses == sorted(losses, reverse=True)
