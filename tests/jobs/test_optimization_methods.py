"""Optimizations by every method, on the command line and in Python: weights, penalties, resumption and stops."""

import jax.numpy as jnp
import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from tests.tables import every

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
