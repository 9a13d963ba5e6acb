"""Derivatives of the mean over random seeds: those of single seeds averaged, and what is refused."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.jobs.derivatives import differentiate
from simkit.scenario.made_in_python import load
from tests.core.test_buffers import swing
from tests.jobs.test_mean_derivatives import BOTH, SEEDS
from tests.toys import PENDULUMS, SPRINGS, toy


def of_each(scenario, wrt, **values):
    found = [simkit.value_and_grad(scenario, wrt, seed=3 + index, **values) for index in range(SEEDS)]
    return np.array([value for value, _ in found]), {
        name: np.array([slopes[name] for _, slopes in found]) for name in wrt
    }


@pytest.mark.parametrize("objective", ["energy", "time_mean(energy)*final(mean(position))"])
@pytest.mark.parametrize(
    "values", [{}, {"mode": "forward"}, {"mode": "reverse"}, {"mode": "reverse", "memory": "1MB"}], ids=str
)
def test_the_mean_is_that_of_single_seeds(values, objective):
    each, slopes = of_each(toy(), BOTH, objective=objective)
    value, derivative = simkit.value_and_grad(toy(), BOTH, objective=objective, seed=3, seeds=SEEDS, **values)
    assert value == pytest.approx(each.mean(), rel=1e-13)
    for name in BOTH:
        np.testing.assert_allclose(derivative[name], slopes[name].mean(axis=0), rtol=1e-12)


def test_the_implicit_derivative_of_the_mean():
    wrt = ["rest", "stiffness"]
    each, slopes = of_each(toy(SPRINGS), wrt)
    value, derivative = simkit.value_and_grad(toy(SPRINGS), wrt, seed=3, seeds=SEEDS)
    assert value == pytest.approx(each.mean(), rel=1e-10)
    for name in wrt:
        np.testing.assert_allclose(derivative[name], slopes[name].mean(axis=0), rtol=1e-6, atol=1e-9)


def test_standard_errors_are_those_of_the_sample():
    each, slopes = of_each(toy(), BOTH, objective="energy")
    found = differentiate(load(toy(), {"seed": 3}), BOTH, "energy", "shortest", seeds=SEEDS)
    assert found.value_error == pytest.approx(each.std(ddof=1) / SEEDS**0.5, rel=1e-9)
    for name in BOTH:
        assert found.error[name] == pytest.approx(slopes[name].std(ddof=1) / SEEDS**0.5, rel=1e-9)


def random_swing(capacity=1):
    """Return `swing` from a random time on, so that the numbers of passages differ between seeds."""
    simulation = swing(capacity)

    def init(params, key):
        start = simulation.init(params, key)
        return dataclasses.replace(start, time=start.time + 3 * jax.random.uniform(key))

    return dataclasses.replace(simulation, init=init, sized_like=lambda state: random_swing(state.passages.capacity))


def test_buffers_grow_for_every_seed():
    values = {"steps": 100, "every": 5, "objective": "final(sum)"}
    each, slopes = of_each(random_swing(), ["time_step"], **values)
    value, derivative = simkit.value_and_grad(random_swing(), ["time_step"], seed=3, seeds=SEEDS, **values)
    assert np.ptp(each) > 1 and value == pytest.approx(each.mean(), rel=1e-5)
    np.testing.assert_allclose(derivative["time_step"], slopes["time_step"].mean(), rtol=1e-5)


def test_the_command_line_reports_the_mean(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    words = ["grad", str(tmp_path / "toy.toml"), "--wrt", "frequency,time_step", "--seeds", "4"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert " +- " in told and "float64; mean of 4 seeds)" in told and "standard error" in told
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 4 and found["standard_error"] > 0
    assert set(found["wrt"]["frequency"]) == {"derivative", "standard_error"}


def test_seeds_that_fail_are_named(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS.replace("bounds = [1e-4, 0.1]", "bounds = [1e-4, 1e300]"))
    words = ["grad", str(tmp_path / "toy.toml"), "--set", "time_step=1e300", "--wrt", "frequency", "--seeds", "9"]
    assert main(words) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    assert "turned non-finite" in told and "(seed 0, 1, 2, 3, 4 and 4 more)" in told
