"""The Python interface: run, resume, open_run, value_and_grad, optimize."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray

import simkit
from tests.jobs.test_sweeps import wild_flow
from tests.scenarios.small import small
from tests.stopping import StopAfter, Stopped
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


@pytest.mark.parametrize("precision", ["float32", "float64"])
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
    assert len(bytes_of(tmp_path / "a")) == 17  # 11 segments, 2 checkpoints, manifest, scenario, summary, lock


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


def test_non_finite_run_raises_and_can_be_opened(tmp_path):
    when = r"between step \d+, where largest_velocity = .*, and step \d+"
    message = rf"^channel_flow turned non-finite; .* \({when}, with reynolds = 20000.0, .*time_step = 5.0\)"
    with pytest.raises(simkit.RunFailedError, match=message):
        simkit.run(wild_flow(time_step=5.0), output=tmp_path / "run")
    with pytest.raises(simkit.RunFailedError, match=message):
        simkit.resume(tmp_path / "run")
    stored = simkit.open_run(tmp_path / "run")
    assert stored.attrs["status"] == "non_finite"
    energy = stored["kinetic_energy"].values
    assert np.isfinite(energy[:-1]).all() and not np.isfinite(energy[-1])


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_value_and_grad_gives_the_objective_and_its_derivatives(mode):
    value, derivative = simkit.value_and_grad(toy(), ["frequency", "time_step"], mode=mode)
    assert value == pytest.approx(float(simkit.run(toy())["energy"][-1]), rel=1e-14)
    for name, at in (("frequency", 1.3), ("time_step", 0.01)):
        step = 1e-5 * at
        ends = [simkit.value_and_grad(toy(), name, **{name: at + sign * step})[0] for sign in (1, -1)]
        # Central differences: truncation 1e-10, rounding 1e-16 / 1e-5.
        assert derivative[name] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-8)


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


def test_a_function_of_frames_and_diagnostics_is_an_objective():
    def last_energy(frames, diagnostics):
        return diagnostics["energy"][-1] + 0 * frames["position"].sum()

    named = simkit.value_and_grad(toy(), ["frequency", "time_step"], objective="energy")
    given = simkit.value_and_grad(toy(), ["frequency", "time_step"], objective=last_energy)
    assert given[0] == pytest.approx(named[0], rel=1e-14)
    for name in named[1]:
        assert given[1][name] == pytest.approx(named[1][name], rel=1e-12)
    # A relaxation has one frame, the last, and an implicit derivative.
    length = simkit.value_and_grad(toy(SPRINGS), "rest")
    spread = simkit.value_and_grad(toy(SPRINGS), "rest", objective=lambda frames, numbers: numbers["length"].sum())
    assert spread[0] == pytest.approx(length[0], rel=1e-12)
    assert spread[1]["rest"] == pytest.approx(length[1]["rest"], rel=1e-9)
    with pytest.raises(simkit.UserError, match=r"returns float64 of shape \(\d+,\); return one real number"):
        simkit.value_and_grad(toy(), "frequency", objective=lambda frames, numbers: numbers["energy"])
    with pytest.raises(simkit.UserError, match="reads 'enrgy', which is unknown; did you mean 'energy'"):
        simkit.value_and_grad(toy(), "frequency", objective=lambda frames, numbers: numbers["enrgy"][-1])
    with pytest.raises(
        simkit.UserError, match=r"objective is of type function, .* declare a diagnostic as an objective"
    ):
        simkit.optimize(toy(), "frequency", objective=last_energy)


def test_numpy_and_jax_scalars_are_accepted_as_numbers():
    import jax.numpy as jnp

    plain = simkit.run(toy(), frequency=2.5, steps=30, every=3)
    for frequency, steps in [
        (np.float32(2.5), np.int64(30)),
        (np.array(2.5), np.array(30)),
        (jnp.float32(2.5), jnp.int32(30)),
        (jnp.asarray(2.5), 30),
    ]:
        xarray.testing.assert_identical(plain, simkit.run(toy(), frequency=frequency, steps=steps, every=np.uint8(3)))
    for wrong, message in [
        (np.array([1.0, 2.0]), "does not have the default's shape"),
        (object(), "is of type object; write a number"),
        (np.array("a"), "is a string; write a number"),
    ]:
        with pytest.raises(simkit.UserError, match=message):
            simkit.run(toy(), frequency=wrong)


def test_optimum_is_found_and_stored(tmp_path):
    # The chain is shortest at the lower bound of the rest length.
    result = simkit.optimize(toy(SPRINGS), "rest", output=tmp_path / "best", iterations=30)
    assert float(result["best_rest"][-1]) == pytest.approx(0.5, abs=1e-3)
    assert float(result["loss"][-1]) < float(result["loss"][0])
    # The data set says so, too.
    assert int(result["bound_rest"][-1]) == -1
    line = "rest = 0.5 ends at its lower bound 0.5, toward which the objective still improves"
    assert result.attrs["at_bounds"] == line
    count = int(result["iteration"][-1])
    assert result.attrs["message"].endswith(f"converged after {count} iterations; {line}")
    assert "rest = 0.5 ends at its lower bound" in repr(result)
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "best"), result)
    xarray.testing.assert_identical(simkit.resume(tmp_path / "best"), result)


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_interrupted_optimization_resumes_bit_for_bit(method, tmp_path):
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization

    job = Optimization(toy(), ("frequency", "time_step"), "energy", method=method, iterations=5)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(3))
    resumed = simkit.resume(tmp_path / "stopped")
    whole = simkit.optimize(toy(), ["frequency", "time_step"], method=method, iterations=5, output=tmp_path / "whole")
    xarray.testing.assert_identical(resumed, whole)
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": "frequenzy"}, "did you mean 'frequency'"),
        ({"objective": "enrgy"}, "did you mean 'energy'"),
        ({"method": "newton"}, "is not one of 'lbfgs', 'adam'"),
        ({"iterations": 0}, "iterations = 0 is out of range"),
        ({"method": "adam", "learning_rate": float("nan")}, "learning rate = nan is not finite"),
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

    monkeypatch.setattr("simkit.engine.loop.run_all", explode)
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, seeds=1.5), "seeds = 1.5 is a float"),
        (
            lambda: simkit.sweep(toy(), {"frequency": [1.0]}, seeds=True),
            "seeds = true is a boolean",
        ),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, chunk="2"), "chunk = '2' is a string"),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0]}, memory="x"), "'x' is not a memory size; write a number"),
        (lambda: simkit.sweep(toy(), [1.0]), "over is of type list; give {name of a parameter: list of values}"),
        (lambda: simkit.sweep(toy(), {"frequency": [1.0, 1.0]}), "over frequency lists a value twice"),
        (lambda: simkit.optimize(toy(), "frequency", iterations="3"), "iterations = '3' is a string"),
        (
            lambda: simkit.optimize(toy(), "frequency", method="adam", learning_rate="a"),
            "learning rate = 'a' is a string",
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


def test_numpy_integers_are_accepted_as_counts(tmp_path):
    found = simkit.sweep(toy(), {"frequency": [1.0]}, seeds=np.int64(2), chunk=np.int32(1), output=tmp_path / "sweep")
    assert found.sizes["seed"] == 2
    best = simkit.optimize(toy(), "frequency", method="adam", iterations=np.int64(1), learning_rate=np.float32(0.1))
    assert best.sizes["iteration"] == 2


def test_run_with_a_parameter_missing_in_its_file_is_stored(tmp_path):
    start, end = PENDULUMS.index("[params.time_step]"), PENDULUMS.index("[run]")
    (tmp_path / "mine.toml").write_text(PENDULUMS[:start] + PENDULUMS[end:])
    run = simkit.run(tmp_path / "mine.toml", output=tmp_path / "run", **{"params.time_step": 0.02})
    assert run.attrs["time_step"] == 0.02
    xarray.testing.assert_identical(simkit.resume(tmp_path / "run"), run)


@pytest.mark.parametrize("work", ["run", "sweep", "optimize", "grad"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_interrupted_job_resumes_with_a_parameter_missing_in_its_file(work, tmp_path):
    from simkit.jobs.gradients import Gradient
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization
    from simkit.jobs.runs import Run
    from simkit.jobs.sweeps import Sweep
    from simkit.scenario.loading import load

    start, end = PENDULUMS.index("[params.time_step]"), PENDULUMS.index("[run]")
    (tmp_path / "mine.toml").write_text(PENDULUMS[:start] + PENDULUMS[end:])
    scenario = load(tmp_path / "mine.toml", {"params.time_step": 0.02})
    job = {
        "run": lambda: Run(scenario),
        "sweep": lambda: Sweep(scenario, {"frequency": (1.0, 2.0)}, chunk=1),
        "optimize": lambda: Optimization(scenario, ("frequency",), "energy", iterations=5),
        "grad": lambda: Gradient(scenario, ("frequency",), "energy"),
    }[work]().checked()
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(2))
    resumed = simkit.resume(tmp_path / "stopped")
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(resumed, simkit.open_run(tmp_path / "whole"))
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")
