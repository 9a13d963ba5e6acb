"""Derivatives: of runs, differences, sums of squares, memory, roots and what depends on what."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.dependence import draws, in_steps_only, without_effect
from simkit.core.expressions.measures import measure
from simkit.core.gradient import differences
from simkit.core.implicit import root_change
from simkit.core.objective import Objective
from simkit.core.pytrees import size_in_bytes
from simkit.core.rollout import SMALL_BYTES, nesting_of, nesting_within, trajectory
from simkit.core.second import entries, hessian
from simkit.core.status import Status
from simkit.core.tracing import traced_once
from simkit.errors import UserError
from tests.core.toys import descent, oscillator
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every(("numbers", "expected"), [(3, "forward"), (4, "reverse")])
def test_the_shortest_mode_is_forward_for_few_numbers(numbers, expected):
    values, key = {"x": jnp.arange(float(numbers))}, jax.random.key(0)

    def programs(mode):
        function = gradient.with_derivative(lambda params, key: jnp.sum(jnp.sin(params["x"])), ["x"], mode)
        return str(jax.make_jaxpr(function)(values, key))

    assert programs("shortest") == programs(expected)
    assert programs("forward") != programs("reverse")


@every(("steps", "numbers", "expected"), [(10, 16, "forward"), (10, 17, "reverse"), (10**6, 4, "reverse")])
def test_the_shortest_mode_of_a_small_run_is_forward_for_more_numbers(steps, numbers, expected):
    simulation, key = oscillator(), jax.random.key(0)
    params = {**simulation.params, "push": jnp.zeros(numbers)}

    def step(state, params):
        after = simulation.step(state, params)
        return dataclasses.replace(after, velocity=after.velocity + jnp.sum(params["push"]))

    objective = Objective(dataclasses.replace(simulation, step=step), "energy", steps)
    programs = {
        mode: str(gradient.jitted(objective, ["push"], mode, params, key).trace(params, key).jaxpr)
        for mode in ("shortest", "forward", "reverse")
    }
    assert programs["shortest"] == programs[expected]
    assert programs["forward"] != programs["reverse"]


def weights():
    return {"w": jnp.array([1e-3, 0.0, 1.0, -2e-9]), "shift": jnp.array(0.0), "gain": jnp.array(2e-8)}


def network(params):
    w = params["w"]
    # A large value with small slopes: round-off dominates for steps of 1e-9.
    return 100.0 + jnp.sum(jnp.tanh(w * jnp.array([0.3, 2.0, 1.0, 5.0]) + params["shift"])) + jnp.sin(params["gain"])


class Wrong:
    """An objective whose derivative is off by one part in ten thousand for one of its weights."""

    converges = True

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, params, key):
        w = params["w"]
        off = jnp.zeros_like(w).at[0].set(self.factor - 1) * (w - jax.lax.stop_gradient(w))
        return network({**params, "w": w + off})

    def with_status(self, params, key):
        return self(params, key), jnp.int32(Status.OK)

    def continuation(self, params, key):
        return network


@pytest.mark.parametrize("bounds", [None, {"w": (-5.0, 5.0), "shift": (-1.0, 1.0), "gain": (0.0, 1.0)}])
def test_small_and_zero_entries_beside_large_ones_pass(bounds):
    checked = gradient.check_gradient(Wrong(1.0), weights(), jax.random.key(0), list(weights()), bounds=bounds)
    if bounds:
        # Without bounds, the scale of a parameter of 2e-8 is its own size, which no step can resolve.
        assert set(checked.verdict.values()) == {"agrees"}
    assert checked.verdict["w"] == checked.verdict["shift"] == "agrees"
    assert checked.relative_difference["w"] < 1e-8
    assert np.all(np.abs(checked.difference["w"] - checked.derivative["w"]) <= 3 * checked.error["w"])


@pytest.mark.parametrize("factor", [1.0001, 0.5, 0.0, -1.0])
def test_a_wrong_derivative_of_a_small_entry_is_caught(factor):
    checked = gradient.check_gradient(Wrong(factor), weights(), jax.random.key(0), ["w"])
    assert checked.verdict["w"] == "differs"


def test_noise_above_the_derivative_is_uncertain_and_not_wrong():
    # Noise from a hash of the bits of x, far larger than the change by the slope in any step.
    def noisy(params):
        return 1e-9 * params["x"] + jnp.sin(1e12 * params["x"])

    found = differences(noisy, {"x": jnp.array(0.7)}, ["x"])["x"]
    assert gradient.verdict_of(np.array(1e-9), found) == "uncertain"


def test_differences_stay_within_the_bounds():
    # NaN beyond its bounds; differentiated at a bound, next to a bound, and in between.
    def inside(params):
        x = params["x"]
        return jnp.where((x >= 0) & (x <= 4), jnp.exp(x), jnp.nan)

    for at in (0.0, 1e-9, 1.0, 4 - 1e-9, 4.0):
        found = differences(inside, {"x": jnp.array(at)}, ["x"], {"x": (0.0, 4.0)})["x"]
        assert abs(found.value - np.exp(at)) <= 3 * found.error < 1e-4


def test_cancellation_inside_a_function_counts_as_noise(x64):
    # Zero but for the rounding of terms of size 10: no difference of it says anything.
    def function(params):
        return 10.0 * jnp.sin(params["p"]) ** 2 + 10.0 * jnp.cos(params["p"]) ** 2 - 10.0

    found = differences(function, {"p": jnp.asarray(9.81)}, ["p"])["p"]
    assert abs(found.value) <= found.error
    assert gradient.verdict_of(np.array(-3e-15), found) != "differs"


KEY = jax.random.key(7)
CASES = {
    "through steps": (lambda: Objective(oscillator(), "energy", 60), ("frequency", "time_step")),
    "of a series": (lambda: Objective(oscillator(), "position", 60, 6, "mean"), ("frequency", "time_step")),
    "of an equilibrium": (lambda: Objective(descent(), "length", 20_000), ("rest", "stiffness")),
}


def test_rows_of_array_entries_are_named_by_their_index(x64):
    params = {"b": jnp.zeros((2, 2)), "a": jnp.asarray(1.0), "deep": {"c": jnp.zeros(2)}}
    assert entries(params, ["deep", "b", "a"]) == [
        "a",
        *(f"b[{i}, {j}]" for i in (0, 1) for j in (0, 1)),
        "deep.c[0]",
        "deep.c[1]",
    ]

    def objective(params, key):
        value = params["a"] ** 2 * params["b"][0, 1] + 3 * params["b"][1, 0] * params["deep"]["c"][1]
        return value, jnp.int32(0)

    matrix = jax.jit(hessian(objective, ["deep", "b", "a"]))(params, KEY)[3]
    names = entries(params, ["deep", "b", "a"])
    expected = np.zeros((7, 7))
    for a, b, value in (("a", "b[0, 1]", 2.0), ("b[1, 0]", "deep.c[1]", 3.0)):
        expected[names.index(a), names.index(b)] = expected[names.index(b), names.index(a)] = value
    np.testing.assert_array_equal(matrix, expected)


BUDGET_KEY = 7
SIZE = 4096  # of the oscillator: a state of 32 kB


def state_size():
    simulation = oscillator(SIZE)
    return size_in_bytes(jax.eval_shape(simulation.init, simulation.params, jax.random.key(BUDGET_KEY)))


def compiled_size(steps, memory, **how):
    simulation = oscillator(SIZE)
    objective = Objective(simulation, "energy", steps, memory=memory, **how)
    program = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(BUDGET_KEY)).compile()
    return program.memory_analysis().temp_size_in_bytes


def test_more_memory_computes_steps_less_often():
    found = [nesting_within((100_000,), 10**6, memory).levels for memory in (10**8, 2 * 10**8, 10**9, 10**12)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1] == 2


@every("loops", [(1,), (7,), (97,), (1000,), (100, 10), (13, 17), (1, 4096)])
@every("memory", [0, 10 * SMALL_BYTES, 50 * SMALL_BYTES, 10**12])
def test_the_nesting_chosen_fits_wherever_one_does(loops, memory):
    size = SMALL_BYTES  # so that no loop of two turns is held whole for being little
    found = nesting_within(loops, size, memory)
    widths = range(4, max(loops) + 5)
    best = min((nesting_of(loops, size, width) for width in widths), key=lambda nesting: nesting.states)
    assert found.states * size <= memory or found.states <= 1.2 * best.states
    fitting = [n.levels for width in widths if (n := nesting_of(loops, size, width)).states * size <= memory]
    if fitting and found.states * size <= memory:
        assert found.levels <= min(fitting) + 1


FRAMES = {"u": np.random.default_rng(0).normal(size=(5, 4, 3))}
SERIES = {"time": np.arange(5.0), "drag": np.asarray([1.0, -2.0, 3.0, 0.5, 4.0]), "lift": np.linspace(-1, 1, 5)}
AXES = {"u": ("x", "y")}


def arrays():
    """Return frames and diagnostics in the precision of the test."""
    return jax.tree.map(jnp.asarray, (FRAMES, SERIES))


@every(
    ("text", "words"),
    [
        ("time_mean(drag)", "'drag' is not a sum of squares; write sums"),
        ("time_mean(drag**2) - final(lift)**2", "is not a sum of squares"),
        ("-1*time_mean(drag**2)", "is not a sum of squares"),
        ("time_mean(lift*drag**2)", "drag..2' is not a sum of squares"),
        ("time_mean(drag**3)", "is not a sum of squares"),
        ("largest(drag**2)", "is not a sum of squares"),
        ("time_rms(drag)", "is the root of a sum of squares; square it"),
        ("exp(final(drag)**2)", "is not a sum of squares"),
    ],
)
def test_what_is_no_sum_of_squares_is_refused_by_name(text, words):
    expressed = measure(text, "objective", AXES, {*FRAMES, *SERIES})
    with pytest.raises(UserError, match=words):
        expressed.residuals(*arrays())


def test_an_objective_without_squares_has_no_residuals():
    simulation, key = oscillator(), jax.random.key(0)
    for quantity, words in (("position", "set square = true"), (lambda f, d: d["position"][-1], "write an expression")):
        with pytest.raises(UserError, match=words):
            Objective(simulation, quantity, 40).residuals(simulation.params, key)


def test_definitions_are_inserted_and_hidden_by_quantities(x64):
    definitions = {"peak": "largest(drag)", "end": "lift**2", "both": "peak + 2*end", "drag": "0*final(lift)"}
    known = {*FRAMES, *SERIES}

    def value(text):
        return float(measure(text, "objective", AXES, known, definitions=definitions)(*arrays()))

    assert value("peak + 0.5*end") == pytest.approx(4 + 0.5)
    assert value("both*peak") == pytest.approx((4 + 2) * 4)
    assert value("time_mean(drag) + end") == pytest.approx(np.mean(SERIES["drag"]) + 1)
    assert measure("peak**2 + end", "objective", AXES, known, definitions=definitions).residuals(*arrays()).size == 2


def test_definitions_of_themselves_are_refused():
    definitions = {"a": "b + 1", "b": "a*2"}
    with pytest.raises(UserError, match=r"objectives\.b: .* 'a' is not known here"):
        measure("a", "objective", AXES, {*FRAMES, *SERIES}, definitions=definitions)


def test_the_time_sum_counts_stored_frames(x64):
    simulation = oscillator()
    _, frames, diagnostics = trajectory(simulation, 20, 5)(simulation.params, jax.random.key(0))
    expressed = measure("time_sum(position)", "objective", {}, {*frames, *diagnostics})
    stored = jnp.asarray([True, True, True, False, False])
    np.testing.assert_allclose(expressed(frames, diagnostics, stored), jnp.sum(diagnostics["position"][:3]), rtol=1e-13)


def _through_own_derivative(p, x):
    @jax.custom_jvp
    def both(used, idle):
        return used * x, idle

    both.defjvps(lambda t, *_: (t, t), lambda t, *_: (t, t))
    return both(p["used"], p["idle"])


@every(
    {
        "a barrier": lambda p, x: jax.lax.optimization_barrier((p["used"] * x, p["idle"])),
        "a loop": lambda p, x: jax.lax.scan(lambda c, n: ((c[0] + p["used"], c[1] * p["idle"]), n), (x, x), length=3)[
            0
        ],
        "a loop that ends by data": lambda p, x: jax.lax.while_loop(
            lambda c: c[0] < p["used"], lambda c: (c[0] + 1, c[1] + p["idle"]), (x, x)
        ),
        # What is carried from turn to turn reaches the result one turn later.
        "what is carried": lambda p, x: jax.lax.fori_loop(
            0, 4, lambda _, c: (c[1], c[2], c[2] + p["used"], c[3] + p["idle"]), (x, x, x, x)
        ),
        "a branch": lambda p, x: jax.lax.cond(x > 0, lambda: (p["used"], p["idle"]), lambda: (x, x)),
        "a program": lambda p, x: jax.jit(lambda used, idle: (used + x, idle))(p["used"], p["idle"]),
        "a checkpoint": lambda p, x: jax.checkpoint(lambda a, b: (jnp.sin(a) + x, jnp.sin(b)))(p["used"], p["idle"]),
        "a derivative of its own": _through_own_derivative,
    }
)
def test_what_passes_beside_a_result_has_no_effect_on_it(through):
    params = {"used": jnp.float32(1), "idle": jnp.float32(2)}
    assert without_effect(lambda p, x: through(p, x)[0], params, jnp.float32(0.5)) == ["idle"]


def test_a_parameter_that_is_compared_alone_changes_a_result_in_steps():
    def inside(p, x):
        return jnp.sum(jnp.where(jnp.abs(x) < p["edge"], p["height"], 0.0)) + jnp.floor(p["rounded"])

    params = {name: jnp.float32(1) for name in ("edge", "height", "idle", "rounded")}
    assert in_steps_only(inside, params, jnp.linspace(-2, 2, 5)) == ["edge", "rounded"]


def test_a_test_for_finite_numbers_is_no_effect():
    def checked(p, x):
        return jnp.where(jnp.isfinite(p["idle"]), p["used"] * x, jnp.nan)

    params = {"idle": jnp.float32(1), "used": jnp.float32(2)}
    assert without_effect(checked, params, jnp.float32(1)) == ["idle"]
    assert not in_steps_only(checked, params, jnp.float32(1))


def test_a_key_that_is_passed_on_and_not_used_draws_nothing():
    simulation = oscillator()
    fixed = traced_once(lambda params, key: simulation.init(params, jax.random.key(0)))
    assert draws(simulation)
    assert not draws(dataclasses.replace(simulation, init=lambda params, key: fixed(params, key)))


def cube_root(p):
    """Return the root of ``sin(t^3 - p) = 0``, the cube root of p."""
    found = jax.lax.stop_gradient(jnp.cbrt(p))

    def gap(z, given):
        p, found, count = given
        return jnp.sin((found + z) ** 3 - p) * count

    return found + root_change(gap, 3 * found**2, (p, found, jnp.int32(1)))


def test_members_and_loops_have_them_too():
    def twice(p):
        return jax.lax.scan(lambda t, _: (jax.checkpoint(cube_root)(t), None), p, None, length=2)[0]

    p = jnp.array([0.5, 1.0, 2.0])
    found = jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(twice))))(p)
    np.testing.assert_allclose(found, 1 / 9 * (1 / 9 - 1) * p ** (1 / 9 - 2), rtol=1e-13)


def test_there_is_no_derivative_where_the_rate_is_zero():
    def root(p):
        return root_change(lambda z, p: z - p, jnp.zeros_like(p), p)

    assert jax.grad(root)(1.0) == 0 and jax.grad(jax.grad(root))(1.0) == 0
