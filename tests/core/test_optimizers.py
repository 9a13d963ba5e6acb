"""Optimizers and their coordinates."""

import builtins
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.bounded import to_bounded, to_unbounded
from simkit.core.optimization import optimization
from simkit.core.optimizers.cma_es import batched_by_members
from simkit.core.optimizers.levenberg_marquardt import SumOfSquares
from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.errors import UserError
from tests.core.toys import oscillator, stepping_together
from tests.tables import every

BOUNDS = {"x": (-2.0, 6.0), "y": (-10.0, 10.0)}


def rosenbrock(params, key):
    return (1 - params["x"]) ** 2 + 100 * (params["y"] - params["x"] ** 2) ** 2


@every("bounds", [(-1.0, 3.0), (-1.0, np.inf), (-np.inf, 3.0), (-np.inf, np.inf)])
def test_coordinates_of_any_bounds_invert_and_stay_inside(bounds, x64):
    values = {"x": jnp.asarray([-0.9999, 0.0, 2.5])}
    back = to_bounded(to_unbounded(values, {"x": bounds}), {"x": bounds})
    np.testing.assert_allclose(back["x"], values["x"], rtol=1e-12, atol=1e-12)
    far = to_bounded({"x": jnp.asarray([-50.0, 50.0])}, {"x": bounds})["x"]
    assert (far >= bounds[0]).all() and (far <= bounds[1]).all()


@every(
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
@every("wide", [False, True])
def test_a_start_near_a_bound_is_kept_and_a_start_at_a_bound_is_moved(value, bounds, start, wide):
    with jax.enable_x64(wide):
        limits = {"x": bounds}
        found = to_bounded(to_unbounded({"x": jnp.asarray(value, dtype=float)}, limits), limits)["x"]
        assert float(found) == pytest.approx(start, rel=1e-5)


@every(
    ("options", "message"),
    [
        ({"learning_rate": 0.1}, "learning_rate has no effect on method = 'lbfgs'; leave it out"),
        (
            {"method": "adam:learning_rate=0.2", "learning_rate": 0.1},
            "learning_rate = 0.1 is given beside method = 'adam:learning_rate=0.2'",
        ),
        ({"method": "levenberg_marquardt"}, "needs the residuals of a sum of squares"),
        ({"method": "newton"}, "method = 'newton' is unknown; choose one of adam"),
    ],
)
def test_a_method_refuses_what_it_does_not_take(options, message):
    with pytest.raises(UserError, match=message):
        optimization(rosenbrock, {"x": 0.0, "y": 0.0}, ["x"], BOUNDS, **options)


def needs_evosax(method):
    if method == "cma_es":
        pytest.importorskip("evosax")


def start_at(*numbers):
    return {name: jnp.asarray(number, dtype=float) for name, number in zip("xy", numbers, strict=False)}


def ended(objective, start, steps, bounds=None, **options):
    """Return the optimization of all numbers of a start, its state after some steps, and its status then."""
    simulation = optimization(objective, start, list(start), bounds or {}, **options)
    state = jax.jit(segment(simulation, steps))(simulation.init(start, jax.random.key(0)), start)
    return simulation, state, Status(int(simulation.status(state, start)))


def decay(params, key):
    """Residuals of a fit of a exp(-k t) cos(w t) to exact data with a, k, w = 2, 0.3, 1.5."""
    t = jnp.linspace(0, 5, 40)
    model = params["a"] * jnp.exp(-params["k"] * t) * jnp.cos(params["w"] * t)
    return model - 2 * jnp.exp(-0.3 * t) * jnp.cos(1.5 * t) - 0.1 * jnp.sin(7 * t)


def test_a_trial_that_is_not_finite_is_refused(x64):
    # The Gauss-Newton step from 0.2 leads to a negative number, of which the logarithm is NaN.
    start = start_at(4.0)
    squares = SumOfSquares(lambda params, key: jnp.log(params["x"]))
    _, state, status = ended(squares, start, 50, method="levenberg_marquardt")
    assert status == Status.CONVERGED and float(state.best["x"]) == pytest.approx(1, abs=1e-6)


def test_cma_es_without_its_package_is_refused_in_one_line(monkeypatch):
    real = builtins.__import__

    def without(name, *more):
        if name.startswith("evosax"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"needs the package evosax: pip install 'simkit-physics\[evolution\]'"):
        optimization(lambda params, key: params["x"], start_at(1.0), ["x"], {}, method="cma_es")


def test_a_batch_of_runs_takes_the_step_of_members(x64):
    batches = []

    def positions(simulation):
        run = segment(simulation, 40)

        def one(frequency):
            params = simulation.params | {"frequency": frequency}
            return simulation.diagnose(run(simulation.init(params, jax.random.key(0)), params), params)

        return jax.jit(jax.vmap(one))(jnp.asarray([1.0, 1.5, 2.0]))

    found = positions(batched_by_members(stepping_together(batches)))
    # Every array has a member axis, the parameters too that all members share.
    assert batches and all(sizes == {3} for sizes in batches)
    for name, values in positions(oscillator()).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
