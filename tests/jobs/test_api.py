"""The Python interface: run, resume, open_run, value_and_grad, optimize; notebooks, validation, size checks."""

import dataclasses
import json
import re
import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli import progress
from simkit.core.status import Status
from simkit.engine import memory
from simkit.engine.driver import Plan
from simkit.errors import UserError
from simkit.jobs import job
from simkit.jobs.job import Job, begin
from simkit.jobs.runs import Run, RunFailedError
from simkit.jobs.validation import validate
from simkit.scenario.made_in_python import load
from simkit.storage.kinds import KINDS, kind_of
from tests.core.toys import oscillator
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
        ({"objective": "enrgy"}, "did you mean 'energy'"),
        ({"method": "newton"}, "is unknown; choose one of adam, cma_es, lbfgs"),
        ({"iterations": 0}, "iterations = 0 is not an integer from"),
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
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, chunk="2"), "chunk = '2' is not an integer"),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0, 1.0]}), "over frequency has '1.0' twice"),
        (lambda: CALLS["sweep"](zip="no"), "^zip = 'no' is neither true nor false"),
        (lambda: CALLS["sweep"](final_frames="no"), "^final_frames = 'no' is neither true"),
        (
            lambda: simkit.sweep(toy(), [1.0]),
            r"over = \[1.0\] is of type list; give {name of a parameter: list of values}",
        ),
        (lambda: simkit.optimize(toy(), "frequency", iterations="3"), "iterations = '3' is not an integer"),
        (
            lambda: simkit.optimize(toy(), "frequency", method="adam", learning_rate="a"),
            "learning_rate: column 1 of '>>>a': 'a' is not known here",
        ),
        (lambda: simkit.value_and_grad(toy(), None), "wrt = None is of type NoneType; give a name or a list of names"),
        (lambda: simkit.value_and_grad(toy(), [5]), "5 is not the name of a parameter"),
        (lambda: simkit.value_and_grad(toy(), "frequency", mode="x"), "mode = 'x' is unknown"),
        (lambda: simkit.open_run(5), "path = 5 is of type int"),
        (lambda: simkit.resume(None), "path = None is of type NoneType"),
        (lambda: simkit.run(toy(), output=5), "path = 5 is of type int"),
    ],
)
def test_arguments_of_a_wrong_type_give_one_line(call, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


CALLS = {
    "run": lambda **more: simkit.run("projectile", steps=2, every=1, **more),
    "sweep": lambda **more: simkit.sweep("projectile", over={"target_x": [4.0, 5.0]}, steps=2, every=1, **more),
    "optimize": lambda **more: simkit.optimize("projectile", "spin", steps=2, every=1, iterations=1, **more),
    "value_and_grad": lambda **more: simkit.value_and_grad("projectile", "spin", steps=2, every=1, **more),
    "hessian": lambda **more: simkit.hessian("projectile", "spin", steps=2, every=1, **more),
}


@every("transform", [jax.jit, jax.grad], ids=["jit", "grad"])
@every("name", CALLS)
def test_a_call_with_a_traced_parameter_is_refused_in_one_line(name, transform):
    with pytest.raises(UserError, match=f"^simkit.{name} is called under jax.jit, jax.grad or another .*trajectory"):
        transform(lambda speed: CALLS[name](launch_speed=speed))(7.0)


@every("name", CALLS)
def test_a_call_while_jit_traces_is_refused_in_one_line(name):
    with pytest.raises(UserError, match=f"^simkit.{name} is called under jax.jit"):
        jax.jit(CALLS[name])()


@every("value", ["no", 1, None, [True]])
@every("name", [name for name in CALLS if name != "hessian"])
def test_overwrite_is_true_or_false(name, value, tmp_path):
    with pytest.raises(UserError, match=r"^overwrite = .* is neither true nor false"):
        CALLS[name](overwrite=value, output=tmp_path / "out")


def test_a_mistake_gives_one_line_in_a_notebook():
    with pytest.raises(simkit.UserError) as caught:
        simkit.load("chanel_flow")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("UserError: unknown scenario 'chanel_flow'") and "\n" not in line
    assert RunFailedError("it failed")._render_traceback_() == ["RunFailedError: it failed"]


def test_representations_are_short():
    scenario, simulation = load("channel_flow"), oscillator()
    values = "reynolds = 100, forcing = 1, perturbation = 0.3, wall_velocity = 0, time_step = 0.015"
    assert repr(scenario) == f"<Scenario channel_flow: flow.domain, {values}>"
    assert repr(simulation) == "<Simulation: frequency = 1.3, time_step = 0.01>"
    outcome = begin(Run(toy()), None)
    assert repr(outcome) == "<Outcome: toy_pendulums ran all its steps; 11 frames>"
    assert "unfinished" not in repr(dataclasses.replace(outcome, status=np.asarray(Status.CONVERGED)))


def test_progress_is_one_display_of_notebooks_that_vanishes(monkeypatch, capsys):
    shown = []

    class Handle:
        def display(self, data, raw):
            shown.append(("new", data["text/plain"]))

        def update(self, data, raw):
            shown.append(("again", data["text/plain"]))

    simkit.run(toy())
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(DisplayHandle=Handle))
    simkit.run(toy())
    assert not shown  # it was over at once
    monkeypatch.setattr(progress, "SHORT", 0.0)
    monkeypatch.setattr(progress, "NOTEBOOK_INTERVAL", 0.0)
    simkit.run(toy())
    assert [how for how, _ in shown] == ["new", *["again"] * (len(shown) - 1)]
    assert "toy_pendulums  100 %" in shown[-2][1] and shown[-1][1] == ""
    assert capsys.readouterr().err == ""


NUMPY = {
    "final": lambda series: series[-1],
    "mean": np.mean,
    "root_mean_square": lambda series: np.sqrt(np.mean(series**2)),
    "maximum": np.max,
    "minimum": np.min,
    "sum": np.sum,
}


def claim(**keys):
    lines = [f"{key} = {value!r}" if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return "\n[[validation]]\n" + "\n".join(lines) + "\ntolerance = 1e-12\nsource = 'known'\n"


def test_values_of_a_history_are_compared():
    series = begin(Run(toy()), None).arrays["diagnosed.position"]
    assert np.ptp(series) > 0
    claims = [claim(quantity="position", reduce=name, expected=float(of(series))) for name, of in NUMPY.items()]
    checks = validate(toy(PENDULUMS + "".join(claims)))
    names = ["position" if name == "final" else f"position ({name.replace('_', ' ')})" for name in NUMPY]
    assert [(check.what, check.passed) for check in checks] == [(name, True) for name in names]


@every("name", KINDS)
def test_every_kind_is_declared_under_its_name(name):
    kind = kind_of(name)
    assert issubclass(kind, Job) and kind.kind == name
    fields = {field.name for field in dataclasses.fields(kind)}
    assert set(kind.request_checks) <= fields


def shapes(state, frame):
    return jax.ShapeDtypeStruct((state,), np.float32), {"observed.speed": jax.ShapeDtypeStruct((frame,), np.float32)}


def refusal(state, frame, plan, output=None):
    with pytest.raises(UserError) as caught:
        job.check_frames(*shapes(state, frame), plan, output)
    return str(caught.value)


def test_state_and_frames_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**20)
    job.check_frames(*shapes(1000, 1000), Plan(100, 1), None)
    # 101 frames of 100,000 numbers of 4 bytes; 6 of the 10 MiB may be used.
    told = refusal(1000, 100_000, Plan(100, 1))
    assert "the 101 frames of this run need 38.5 MiB and 6 MiB may be used; store fewer with a larger every" in told
    assert "larger every" not in refusal(1000, 1_000_000, Plan(2, 2))
    assert "the state of this simulation needs 7.63 MiB" in refusal(1_000_000, 1, Plan(2, 2))


def test_frames_that_do_not_fit_on_the_disk_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(job.shutil, "disk_usage", lambda path: job.shutil._ntuple_diskusage(1, 1, 2**20))
    job.check_frames(*shapes(1000, 1000), Plan(100, 1), tmp_path / "new" / "run")
    told = refusal(1000, 10_000, Plan(100, 1), tmp_path / "new" / "run")
    assert re.search(r"run would take 3.86 MiB and 1 MiB are free on its disk; store fewer .* another disk", told)
