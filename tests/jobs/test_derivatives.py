"""Derivatives and optimizations from Python and the command line: what is refused, and means over seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.gradient import differences
from simkit.errors import UserError
from simkit.jobs.derivatives import prepared
from tests.tables import every
from tests.toys import (
    PENDULUMS,
    toy,
    toys,  # noqa: F401
)

PLACES = jnp.arange(5.0)


def plane():
    """Return a record with parameters x and y in (-4, 4), and quantities of them that do not depend on time."""

    def named(of):
        return lambda state, params: of(params["x"], params["y"])

    return simkit.Simulation(
        init=lambda params, key: params["x"] * 0.0,
        step=lambda s, params: s,
        observe=lambda s, params: {"curve": params["x"] * jnp.exp(-0.3 * params["y"] * PLACES)},
        diagnose=lambda s, params: {
            "near": (params["x"] - 2) ** 2 + params["y"] ** 2,
            "far": params["x"] ** 2 + (params["y"] + 1) ** 2,
            "width": params["x"] + params["y"],
            "count": jnp.floor(3 * jnp.abs(params["x"] - 1)) + jnp.floor(3 * jnp.abs(params["y"] + 2)),
        },
        params={
            "x": simkit.Parameter(3.0, bounds=(-4.0, 4.0), doc="first"),
            "y": simkit.Parameter(0.5, bounds=(-4.0, 4.0), doc="second"),
        },
        dimensions={"curve": ("place",)},
    )


OPTIONS = {"steps": 1}


def test_an_objective_without_residuals_is_refused_before_anything_is_written(tmp_path):
    for objective, words in (("near", "set square = true"), ("near + far", "'near' is not a sum of squares")):
        with pytest.raises(UserError, match=words):
            simkit.optimize(
                plane(), ["x"], objective=objective, method="levenberg_marquardt", output=tmp_path / "run", **OPTIONS
            )
        assert not (tmp_path / "run").exists()


@every("method", ["lbfgs", "levenberg_marquardt", "cma_es"])
def test_a_learning_rate_is_refused_in_the_same_words_everywhere(method, tmp_path, capsys):
    words = f"learning_rate has no effect on method = '{method}'; leave it out"
    with pytest.raises(UserError, match=words):
        simkit.optimize(plane(), ["x"], objective="near", method=method, learning_rate=0.1, **OPTIONS)
    line = ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--method", method, "--learning-rate", "0.1"]
    assert main([*line, "-o", str(tmp_path / "run")]) == 2
    assert words in capsys.readouterr().err


def test_a_mode_of_differentiation_is_refused_where_there_are_no_derivatives():
    with pytest.raises(UserError, match="mode= is for methods with derivatives; cma_es uses none"):
        simkit.optimize(plane(), "x", objective="near", method="cma_es", mode="forward", **OPTIONS)


def valleys(y=1.0):
    """Return a record whose objective, x^4 - x^2 + x/5 + (y - 2)^2, has two minima in x."""

    def depth(s, params):
        x = params["x"]
        return x**4 - x**2 + 0.2 * x + (params["y"] - 2.0) ** 2

    return simkit.Simulation(
        init=lambda params, key: params["x"] * 0.0,
        step=lambda s, params: s,
        observe=lambda s, params: {"s": s},
        diagnose=lambda s, params: {"depth": depth(s, params)},
        params={"x": 0.3, "y": y},
        parameters={
            "x": simkit.Parameter(0.3, bounds=(-1.5, 1.5), doc="place"),
            "y": simkit.Parameter(1.0, bounds=(0.0, 5.0), doc="other place"),
        },
    )


OF_VALLEYS = {"objective": "depth", "steps": 1, "iterations": 40}


def test_a_wrong_start_is_refused():
    for starts, words in (
        ({"z": [1.0]}, "starts = 'z' is unknown; choose one of"),
        ({"x": [9.0]}, "above its upper bound 1.5"),
        (0, "starts = 0"),
    ):
        with pytest.raises(UserError, match=words):
            simkit.optimize(valleys(), ["x", "y"], starts=starts, **OF_VALLEYS)


BOTH = ("frequency", "time_step")


SEEDS = 5


def test_central_differences_of_the_mean():
    _, derivative = simkit.value_and_grad(toy(), BOTH, objective="energy", seeds=SEEDS)

    def mean(params):
        return jnp.mean(jax.vmap(lambda key: function(params, key))(keys))

    with prepared(toy(), "energy") as (function, params, _):
        keys = jax.vmap(jax.random.key)(jnp.arange(SEEDS, dtype=jnp.uint32))
        found = differences(mean, params, BOTH)
    for name in BOTH:
        np.testing.assert_allclose(derivative[name], found[name].value, rtol=1e-7)


@every(
    ("more", "words"),
    [
        (["--seeds", "1"], "seeds = 1 is not an integer from 2 to"),
        (["--seeds", "0"], "seeds"),
        (["--seeds", "4", "--output", "run"], "--output is not for the mean over seeds"),
        (["--seeds", "4", "--check"], "--check is not for the mean over seeds"),
        (["--seeds", "4", "--second"], "--second is not for the mean over seeds"),
        (["--seeds", "4", "--memory", "1"], "at least, and 1 B may be used"),
    ],
)
def test_what_is_refused(more, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    assert main(["grad", "./toy.toml", "--wrt", "frequency", "--mode", "reverse", *more]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


def test_means_that_do_not_exist_are_refused_from_python(tmp_path):
    with pytest.raises(UserError, match="projectile does not depend on the seed; leave seeds= out"):
        simkit.value_and_grad("projectile", "launch_speed", seeds=4)
    with pytest.raises(UserError, match="leave it out, or leave seeds= out"):
        simkit.value_and_grad(toy(), "frequency", seeds=4, output=tmp_path / "run")


def test_a_matrix_of_too_many_rows_is_refused_in_a_line():
    many = simkit.Simulation(
        init=lambda params, key: params["start"],
        step=lambda state, params: 0.9 * state,
        observe=lambda state, params: {"place": state},
        diagnose=lambda state, params: {"size": (state**2).sum()},
        params={"start": np.ones(300)},
    )
    with pytest.raises(simkit.UserError, match=r"second derivatives by 300 numbers .*hessian_vector_product"):
        simkit.hessian(many, "start", objective="size", steps=2)


def test_derivatives_that_cannot_be_stored_are_refused_from_python(tmp_path):
    for values, words in (({"memory": 10}, "pass a larger memory="), ({"mode": "forward"}, "forward mode")):
        with pytest.raises(UserError, match=words):
            simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", **values)
    with pytest.raises(UserError, match="only its name can be stored"):
        simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", objective=lambda f, d: jnp.sum(d["energy"]))
    assert not list(tmp_path.iterdir())
