"""Methods of optimization: a table of combinations, sums of squares, objectives without derivatives, and stops."""

import builtins
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.optimization import optimization
from simkit.core.optimizers.cma_es import batched_by_members
from simkit.core.optimizers.levenberg_marquardt import SumOfSquares
from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.errors import UserError
from tests.core.toys import oscillator

BOUNDS = {"x": (-2.0, 6.0), "y": (-10.0, 10.0)}


def needs_evosax(method):
    if method == "cma_es":
        pytest.importorskip("evosax")


def valley(params, key):
    """Residuals of Rosenbrock's function, with its minimum 0 at (1, 1)."""
    return jnp.stack([1 - params["x"], 10 * (params["y"] - params["x"] ** 2)])


def start_at(*numbers):
    return {name: jnp.asarray(number, dtype=float) for name, number in zip("xy", numbers, strict=False)}


def ended(simulation, start, steps, key=0):
    state = jax.jit(segment(simulation, steps))(simulation.init(start, jax.random.key(key)), start)
    return state, Status(int(simulation.status(state, start)))


def decay(params, key):
    """Residuals of a fit of a exp(-k t) cos(w t) to exact data with a, k, w = 2, 0.3, 1.5."""
    t = jnp.linspace(0, 5, 40)
    model = params["a"] * jnp.exp(-params["k"] * t) * jnp.cos(params["w"] * t)
    return model - 2 * jnp.exp(-0.3 * t) * jnp.cos(1.5 * t) - 0.1 * jnp.sin(7 * t)


def test_a_trial_that_is_not_finite_is_refused(x64):
    # The Gauss-Newton step from 0.2 leads to a negative number, of which the logarithm is NaN.
    start = start_at(4.0)
    simulation = optimization(
        SumOfSquares(lambda params, key: jnp.log(params["x"])), start, "x", {}, method="levenberg_marquardt"
    )
    state, status = ended(simulation, start, 50)
    assert status == Status.CONVERGED and float(state.best["x"]) == pytest.approx(1, abs=1e-6)


def test_levenberg_marquardt_refuses_what_is_no_sum_of_squares():
    with pytest.raises(UserError, match=r"needs the residuals of a sum of squares"):
        optimization(lambda params, key: params["x"], start_at(1.0), ["x"], {}, method="levenberg_marquardt")


def test_an_unknown_method_is_refused():
    with pytest.raises(UserError, match=r"method = 'newton' is unknown; choose one of adam"):
        optimization(lambda params, key: params["x"], start_at(1.0), ["x"], {}, method="newton")


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
    plain, batches = oscillator(), []

    def together(states, params):
        batches.append({leaf.shape[0] for leaf in jax.tree.leaves((states, params))})
        return jax.vmap(plain.step)(states, params)

    def positions(simulation):
        run = segment(simulation, 40)

        def one(frequency):
            params = simulation.params | {"frequency": frequency}
            return simulation.diagnose(run(simulation.init(params, jax.random.key(0)), params), params)

        return jax.jit(jax.vmap(one))(jnp.asarray([1.0, 1.5, 2.0]))

    found = positions(batched_by_members(dataclasses.replace(plain, step_members=together)))
    # Every array has a member axis, the parameters too that all members share.
    assert batches and all(sizes == {3} for sizes in batches)
    for name, values in positions(plain).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
