"""The Python interface: run, resume, open_run, value_and_grad, optimize."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray

import simkit
from tests.scenarios.small import small
from tests.tables import every
from tests.toys import PENDULUMS, SPRINGS, toy


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_run_returns_a_labeled_data_set():
    result = simkit.run(toy(), frequency=2.0, steps=30, every=3)
    assert result.sizes == {"time": 11, "pendulum": 3, "column": 1}
    # The toy both observes and diagnoses a position.
    assert result["observed_position"].dims == ("time", "pendulum", "column")
    assert result["position"].dims == ("time",)
    np.testing.assert_allclose(result["time"], 0.01 * np.arange(0, 31, 3), rtol=1e-12)
    assert result.attrs["frequency"] == 2.0
    assert (result.attrs["seed"], result.attrs["precision"], result.attrs["steps"]) == (0, "float64", 30)
    assert json.loads(result.attrs["config"]) == {"size": 3}
    assert result.attrs["simkit_version"] == simkit.__version__
    assert result.attrs["scenario"] == "toy_pendulums" and result.attrs["status"] == "ok"


def test_scenario_is_found_by_name_and_by_path(tmp_path):
    (tmp_path / "mine.toml").write_text(PENDULUMS)
    assert simkit.load("channel_flow").name == "channel_flow"
    for path in (tmp_path / "mine.toml", str(tmp_path / "mine.toml")):
        assert simkit.load(path, {"frequency": 3.0}).parameters["frequency"].default == 3.0
    with pytest.raises(simkit.UserError, match="did you mean 'channel_flow'"):
        simkit.run("chanel_flow")


@every("precision", ["float32", "float64"])
def test_run_uses_the_requested_precision_and_restores_the_callers(precision):
    result = simkit.run(toy(), precision=precision)
    assert result["position"].dtype == precision
    import jax

    assert not jax.config.jax_enable_x64


def test_stored_run_is_the_run(tmp_path):
    output = tmp_path / "deep" / "run"
    result = simkit.run(toy(), output=output)
    xarray.testing.assert_identical(result, simkit.run(toy()))
    xarray.testing.assert_identical(simkit.open_run(output), result)
    xarray.testing.assert_identical(simkit.resume(str(output)), result)


def test_same_run_twice_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        simkit.run(toy(), output=tmp_path / name, seed=3)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert (
        len(bytes_of(tmp_path / "a")) == 18
    )  # 11 segments, 2 checkpoints, manifest and its copy, scenario, summary, lock


def test_existing_run_is_replaced_only_when_asked(tmp_path):
    simkit.run(toy(), output=tmp_path / "run")
    with pytest.raises(simkit.UserError, match="pass overwrite=True to replace it, or choose another with output="):
        simkit.run(toy(), output=tmp_path / "run")
    result = simkit.run(toy(), output=tmp_path / "run", overwrite=True, frequency=5.0)
    assert simkit.open_run(tmp_path / "run").attrs["frequency"] == 5.0
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "run"), result)


def test_relaxation_that_converges_stops_early(tmp_path):
    result = simkit.run(toy(SPRINGS), output=tmp_path / "run")
    assert result.attrs["status"] == "converged"
    assert result.sizes["iteration"] < 41
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "run"), result)


def test_relaxation_that_does_not_converge_warns(tmp_path):
    message = r"^toy_springs did not converge .* \(after step \d+, with rest = 1.0"
    with pytest.warns(UserWarning, match=message) as caught:
        result = simkit.run(toy(SPRINGS, steps=20, every=10), output=tmp_path / "run")
    assert caught[0].filename == __file__  # the warning points to the caller's line
    assert result.attrs["status"] == "max_steps"
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "run"), result)


def test_value_and_grad_refuses_unknown_names():
    for arguments, message in [
        (("frequenzy",), "did you mean 'frequency'"),
        (([],), "name each parameter once"),
        ((["frequency", "frequency"],), "name each parameter once"),
    ]:
        with pytest.raises(simkit.UserError, match=message):
            simkit.value_and_grad(toy(), *arguments)
    with pytest.raises(simkit.UserError, match="did you mean 'energy'"):
        simkit.value_and_grad(toy(), "frequency", objective="enrgy")


@every(
    ("options", "message"),
    [
        ({"wrt": "frequenzy"}, "did you mean 'frequency'"),
        ({"objective": "enrgy"}, "did you mean 'energy'"),
        ({"method": "newton"}, "is unknown; choose one of adam, cma_es, lbfgs"),
        ({"iterations": 0}, "iterations = 0 is not an integer of"),
        ({"method": "adam", "learning_rate": float("nan")}, "learning_rate = nan is not a finite number"),
    ],
)
def test_optimization_refuses_invalid_options(options, message, tmp_path):
    with pytest.raises(simkit.UserError, match=message):
        simkit.optimize(toy(), **({"wrt": "frequency"} | options), output=tmp_path / "best")
    assert not list(tmp_path.iterdir())


def test_run_whose_frames_do_not_fit_is_refused_before_it_begins(tmp_path):
    with pytest.raises(simkit.UserError, match=r"2147483648 frames .* store fewer with a larger every \(now 1\)"):
        simkit.run(small("channel_flow", steps=2**31 - 1, every=1), output=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_run_that_fails_before_its_first_frame_leaves_no_directory(tmp_path, monkeypatch):
    def explode(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("simkit.jobs.runs.run_all", explode)
    with pytest.raises(MemoryError):
        simkit.run(toy(), output=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_relative_and_linked_outputs_are_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    for overwrite in (False, True):
        simkit.run(toy(), output="link", overwrite=overwrite)
        assert Path("link").is_symlink()
        assert Path("elsewhere/manifest.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]


def test_scenario_that_differs_from_its_text_is_not_stored(tmp_path):
    changed = dataclasses.replace(toy(), title="Something else")
    assert simkit.run(changed).attrs["title"] == "Something else"
    with pytest.raises(simkit.UserError, match="differs from its text, so it cannot be stored"):
        simkit.run(changed, output=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_interrupted_run_is_read_back_as_unfinished(tmp_path):
    simkit.run(toy(), output=tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    opened = simkit.open_run(tmp_path / "run")
    assert opened.attrs["status"] == "unfinished" and opened.attrs["failed"] == 0
    assert f"finish it with: simkit resume {tmp_path / 'run'}" in opened.attrs["message"]
    assert simkit.resume(tmp_path / "run").attrs["status"] == "ok"


@every(
    ("call", "message"),
    [
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, seeds=1.5), "seeds = 1.5 is not an integer"),
        (
            lambda: simkit.sweep(toy(), {"frequency": [1.0]}, seeds=True),
            "seeds = true is not an integer",
        ),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, chunk="2"), "chunk = '2' is not an integer"),
        (
            lambda: simkit.sweep(toy(), {"frequency": [1.0]}, memory="x"),
            "memory = 'x' is not a memory size",
        ),
        (lambda: simkit.sweep(toy(), [1.0]), "over is of type list; give {name of a parameter: list of values}"),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0, 1.0]}), "over frequency lists a value twice"),
        (lambda: simkit.optimize(toy(), "frequency", iterations="3"), "iterations = '3' is not an integer"),
        (
            lambda: simkit.optimize(toy(), "frequency", method="adam", learning_rate="a"),
            "learning_rate: column 1 of '>>>a': 'a' is not known here",
        ),
        (lambda: simkit.value_and_grad(toy(), None), "wrt = None is not a name or a list of names"),
        (lambda: simkit.value_and_grad(toy(), [5]), r"wrt = \[5\] is not a name or a list of names"),
        (lambda: simkit.value_and_grad(toy(), "frequency", mode="x"), "mode = 'x' is unknown"),
        (lambda: simkit.open_run(5), "5 is not the path of a folder"),
        (lambda: simkit.resume(None), "None is not the path of a folder"),
        (lambda: simkit.run(toy(), output=5), "5 is not the path of a folder"),
    ],
)
def test_arguments_of_a_wrong_type_give_one_line(call, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_run_with_a_parameter_missing_in_its_file_is_stored(tmp_path):
    start, end = PENDULUMS.index("[params.time_step]"), PENDULUMS.index("[run]")
    (tmp_path / "mine.toml").write_text(PENDULUMS[:start] + PENDULUMS[end:])
    run = simkit.run(tmp_path / "mine.toml", output=tmp_path / "run", **{"params.time_step": 0.02})
    assert run.attrs["time_step"] == 0.02
    xarray.testing.assert_identical(simkit.resume(tmp_path / "run"), run)
