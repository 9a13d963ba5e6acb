"""Derivatives: of runs, of second order, of sums of squares, within a memory limit, of roots."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import budget, gradient
from simkit.core.expressions.measures import measure
from simkit.core.objective import REDUCTIONS, Objective
from simkit.core.rollout import nesting_within, segment, trajectory
from simkit.core.second import entries, gauss_newton_product, hessian, hessian_differences, hessian_vector_product
from tests.core.test_derivatives import (
    AXES,
    BUDGET_KEY,
    CASES,
    FRAMES,
    KEY,
    SERIES,
    SIZE,
    arrays,
    compiled_size,
    cube_root,
    state_size,
)
from tests.core.toys import descent, oscillator
from tests.tables import every


# Every reduction in both modes; its square in one of them, in turns.
@every(
    ("mode", "reduce", "square"),
    [
        (mode, reduce, (place + number) % 2 == 0)
        for place, mode in enumerate(("reverse", "forward"))
        for number, reduce in enumerate(REDUCTIONS)
    ],
)
def test_derivative_equals_central_difference(x64, mode, reduce, square):
    simulation = oscillator()
    objective = Objective(simulation, "position", 200, every=20, reduce=reduce, square=square)
    checked = gradient.check_gradient(objective, simulation.params, jax.random.key(0), ["frequency", "time_step"], mode)
    # Truncation h^2 and rounding eps / h balance near 1e-10 for a smooth function of order one.
    assert max(checked.relative_difference.values()) < 1e-7


def test_derivative_per_member_is_the_vmap_of_the_derivative(x64):
    simulation, key = oscillator(), jax.random.key(0)
    derive = gradient.with_derivative(Objective(simulation, "energy", 50), ["frequency"])
    frequencies = jnp.array([0.5, 1.0, 2.0])
    _, together = jax.vmap(lambda f: derive({**simulation.params, "frequency": f}, key))(frequencies)
    alone = [derive({**simulation.params, "frequency": f}, key)[1]["frequency"] for f in frequencies]
    np.testing.assert_allclose(together["frequency"], np.stack(alone), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_product_is_that_with_the_hessian(x64, case):
    make, wrt = CASES[case]
    objective = make()
    params, vector = objective.simulation.params, {wrt[0]: 0.7, wrt[1]: -1.3}
    value, _, derivative, matrix = jax.jit(hessian(objective.with_status, wrt))(params, KEY)
    found, slope, product = jax.jit(hessian_vector_product(objective, wrt))(params, KEY, vector)
    along = np.array([vector[name] for name in entries(params, wrt)])
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for name in wrt:
        np.testing.assert_allclose(slope[name], derivative[name], rtol=1e-7)
    expected = matrix @ along
    np.testing.assert_allclose(
        [product[name] for name in entries(params, wrt)], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max()
    )


def test_gauss_newton_product_is_that_with_the_jacobian_and_its_transpose(x64):
    simulation = oscillator(5)
    wrt = ("frequency", "time_step")

    def residuals(params, key):
        state = segment(simulation, 20)(simulation.init(params, key), params)
        return jnp.stack([state.position, state.velocity]) - 0.3

    params, vector = simulation.params, {"frequency": 0.4, "time_step": 2.0}
    value, derivative, product = jax.jit(gauss_newton_product(residuals, wrt))(params, KEY, vector)
    jacobian = jax.jit(jax.jacfwd(lambda params: residuals(params, KEY).ravel()))(params)
    columns = np.stack([jacobian[name] for name in wrt], 1)
    left = np.asarray(jax.jit(residuals)(params, KEY)).ravel()
    np.testing.assert_allclose(value, 0.5 * left @ left, rtol=1e-13)
    np.testing.assert_allclose([derivative[name] for name in wrt], columns.T @ left, rtol=1e-10)
    expected = columns.T @ (columns @ np.array([vector[name] for name in wrt]))
    np.testing.assert_allclose([product[name] for name in wrt], expected, rtol=1e-10)


def test_a_derivative_within_a_budget_is_the_same(x64):
    simulation, key = oscillator(512), jax.random.key(BUDGET_KEY)
    objective = Objective(simulation, "energy", 20_000, every=10, reduce="mean")
    wrt = ["frequency"]
    expected = gradient.jitted(objective, wrt, "reverse", simulation.params, key)(simulation.params, key)
    plain = budget.fitted(objective, wrt, "reverse", simulation.params, key, memory=10**9)
    tight = budget.fitted(objective, wrt, "reverse", simulation.params, key, memory=2_000_000)
    assert tight.needed <= 2_000_000 < plain.needed
    assert tight.nesting.levels > plain.nesting.levels
    for found in (plain, tight):
        value, status, derivative = found(simulation.params, key)
        assert int(status) == int(expected[1])
        np.testing.assert_allclose(value, expected[0], rtol=1e-13)
        np.testing.assert_allclose(derivative["frequency"], expected[2]["frequency"], rtol=1e-11)


def test_the_error_of_a_small_budget_has_the_memory_needed():
    simulation, key = oscillator(SIZE), jax.random.key(BUDGET_KEY)
    objective = Objective(simulation, "energy", 1000)
    with pytest.raises(budget.NoRoomError) as caught:
        budget.fitted(objective, "frequency", "reverse", simulation.params, key, memory=50_000)
    assert caught.value.needed > 50_000
    again = budget.fitted(objective, "frequency", "reverse", simulation.params, key, memory=caught.value.needed)
    assert again.needed <= caught.value.needed


def test_a_budget_of_bytes_serves_trajectories():
    simulation, key = oscillator(SIZE), jax.random.key(BUDGET_KEY)

    def loss(memory):
        run = trajectory(simulation, 1000, 10, memory=memory)
        return jax.jit(jax.value_and_grad(lambda params: run(params, key)[2]["energy"].sum()))(simulation.params)

    (value, derivative), (same, by_bytes) = loss("balanced"), loss(1_500_000)
    np.testing.assert_allclose(value, same, rtol=1e-6)
    for name in derivative:
        np.testing.assert_allclose(derivative[name], by_bytes[name], rtol=1e-4)


@pytest.mark.parametrize(("steps", "times"), [(100_000, 3), (1_000_000, 10)])
def test_memory_of_long_runs_is_a_few_times_that_of_a_thousand_steps(steps, times):
    thousand = compiled_size(1000, "balanced")
    assert compiled_size(steps, thousand) <= times * thousand


def test_derivatives_that_hold_no_states_are_not_cut():
    key = jax.random.key(BUDGET_KEY)
    for objective, mode in (
        (Objective(oscillator(SIZE), "energy", 1000), "forward"),
        (Objective(descent(), "length", 1000), "reverse"),
    ):
        wrt = list(objective.simulation.params)[:1]
        assert budget.fitted(objective, wrt, mode, objective.simulation.params, key, memory=10**8).nesting is None


@pytest.mark.parametrize(("steps", "memory"), [(1000, 40_000_000), (1000, 3_000_000), (100_000, 2_000_000)])
def test_predicted_number_of_states_matches_the_compiled_program(steps, memory):
    nesting = nesting_within((steps,), state_size(), memory)
    assert nesting.states * state_size() <= memory
    # A few arrays of one step are no states.
    assert 0 <= compiled_size(steps, memory) - nesting.states * state_size() <= 8 * state_size()


@pytest.mark.parametrize("reduce", ["final", "mean", "root_mean_square", "maximum", "minimum", "sum"])
def test_the_square_of_a_diagnostic_has_residuals(reduce, x64):
    simulation, key = oscillator(), jax.random.key(0)
    objective = Objective(simulation, "position", 40, 4, reduce=reduce, square=True)
    residuals = objective.residuals(simulation.params, key)
    assert residuals.shape == ((11,) if reduce == "root_mean_square" else (1,))
    np.testing.assert_allclose(jnp.sum(residuals**2), objective(simulation.params, key), rtol=1e-13)


def test_residuals_have_the_derivative_of_the_expression(x64):
    expressed = measure("time_mean((drag - 1)**2, after=2)", "objective", AXES, {*FRAMES, *SERIES})

    def with_drag(of, drag):
        return of(arrays()[0], arrays()[1] | {"drag": drag})

    drag = arrays()[1]["drag"]
    exact = jax.grad(lambda drag: with_drag(expressed, drag))(drag)
    jacobian = jax.jacfwd(lambda drag: with_drag(expressed.residuals, drag))(drag)
    np.testing.assert_allclose(2 * jacobian.T @ with_drag(expressed.residuals, drag), exact, atol=1e-14)


@every("stored", [None, [True, True, True, False, False]])
@every(
    ("text", "count"),
    [
        ("drag**2", 1),
        ("time_mean((drag - 1)**2)", 5),
        ("time_mean((drag - 1)**2.0)", 5),
        ("time_mean((drag - 1)**2, after=2)", 5),
        ("0.5*time_sum(drag**2) + final(lift)**2/4", 6),
        ("mean((u - 1)**2)", 12),
        ('time_mean(mean(u[1]**2, axis="y"))', 15),
        ('time_mean(sum(mean(u, axis="x")**2))', 15),
        ("rms(u)**2", 12),
        ("norm(final(u))**2 + time_rms(drag)**2", 17),
        ("time_mean((drag*lift)**4)*2**3", 5),
        ("final((drag - 2)**2) + 10*max(0, time_mean(drag) - 1)**2", 2),
        ("final(rms(u))**2 + final(norm(u)**2)", 24),
    ],
)
def test_sum_of_squared_residuals_is_the_expression(text, count, stored, x64):
    expressed = measure(text, "objective", AXES, {*FRAMES, *SERIES})
    arguments = (*arrays(), None if stored is None else jnp.asarray(stored))
    residuals = expressed.residuals(*arguments)
    assert residuals.shape == (count,)
    np.testing.assert_allclose(jnp.sum(residuals**2), expressed(*arguments), rtol=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_hessian_equals_differences_of_derivatives(x64, case):
    make, wrt = CASES[case]
    objective = make()
    params = objective.simulation.params
    near = objective.continuation(params, KEY)
    expected = hessian_differences(lambda params, _: near(params), params, KEY, wrt).value
    for mode in ("forward", "reverse", "shortest"):
        _, _, derivative, matrix = jax.jit(hessian(objective.with_status, wrt, mode))(params, KEY)
        assert set(derivative) == set(wrt)
        np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("modes", list(itertools.product([jax.jacfwd, jax.jacrev], repeat=3)))
def test_three_derivatives_of_a_root_in_any_mode_are_those_of_the_function(x64, modes):
    p, function = 1.7, cube_root
    expected, factor = [], 1.0
    for order in range(3):
        factor *= 1 / 3 - order
        expected.append(factor * p ** (1 / 3 - order - 1))
    for mode, derivative in zip(modes, expected, strict=True):
        function = mode(function)
        np.testing.assert_allclose(function(p), derivative, rtol=1e-13)
