"""Derivatives stored in pieces, of means over seeds, and of second order: those of one program, and resumed."""

import json
import warnings

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.engine.backward import number_of_pieces
from simkit.engine.memory import format_bytes, memory_in_bytes
from simkit.errors import UserError
from simkit.jobs.derivatives import differentiate
from simkit.jobs.job import begin
from simkit.jobs.runs import RunFailedError
from simkit.jobs.stored_derivatives import Gradient, gradient_job
from simkit.jobs.stored_jobs import progress_of
from simkit.scenario.made_in_python import load
from simkit.storage.files import read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory
from tests.core.test_converge import search, swing
from tests.jobs.test_derivatives import BOTH, SEEDS
from tests.stopping import StopAfter, Stopped
from tests.tables import every
from tests.toys import PENDULUMS, SPRINGS, toy, toys  # noqa: F401

# Too small for a derivative of 2,000 steps in 20 pieces.
LIMIT = "4kB"


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_equal(found, expected, rtol=1e-12):
    assert found[0] == pytest.approx(expected[0], rel=rtol)
    assert list(found[1]) == list(expected[1])
    for name, array in expected[1].items():
        np.testing.assert_allclose(found[1][name], array, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("steps", [(20, 2), (21, 1), (21, 21), (1, 1), (600, 20)])
@pytest.mark.parametrize("objective", [None, "time_mean(energy)*final(mean(position))"])
def test_a_stored_derivative_is_that_of_one_program(objective, steps, tmp_path):
    values = {"objective": objective, "steps": steps[0], "every": steps[1]}
    expected = simkit.value_and_grad(toy(), BOTH, mode="reverse", **values)
    found = simkit.value_and_grad(toy(), BOTH, output=tmp_path / "found", **values)
    check_equal(found, expected)
    stored = simkit.open_run(tmp_path / "found")
    assert stored.attrs["value"] == found[0] and float(stored["frequency"]) == found[1]["frequency"]


@pytest.mark.parametrize("simulation", [swing(), search()], ids=["steps", "converges"])
def test_buffers_grow_before_a_derivative_is_stored(simulation, tmp_path):
    wrt, values = next(iter(simulation.params)), {"steps": 100, "every": 5}
    values |= {"objective": "final(sum)" if "frequency" in simulation.params else "final(x)"}
    found = simkit.value_and_grad(simulation, wrt, output=tmp_path / "found", **values)
    check_equal(found, simkit.value_and_grad(simulation, wrt, **values), rtol=1e-5)


@pytest.mark.parametrize("stop", [1, 4, 21, 22, 30, 41])
def test_an_interrupted_derivative_resumes_bit_for_bit(stop, tmp_path):
    job = Gradient(toy(steps=40), BOTH, "energy").checked()
    begin(job, tmp_path / "whole")
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(stop))
    told = progress_of(tmp_path / "stopped")
    assert told.state == "interrupted" and told.words == f"{stop - 1} of 41 segments, forward and backward"
    with pytest.raises(UserError, match="holds no derivative yet; finish it with: simkit resume"):
        simkit.open_run(tmp_path / "stopped")
    simkit.resume(tmp_path / "stopped")
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


@pytest.mark.parametrize("stop", [1, 3])
def test_an_interrupted_implicit_derivative_resumes_bit_for_bit(stop, tmp_path):
    job = Gradient(toy(SPRINGS), ("rest",), "length").checked()
    begin(job, tmp_path / "whole")
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(stop))
    simkit.resume(tmp_path / "stopped")
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


@pytest.mark.parametrize("damaged", ["segments/000003.npz", "checkpoint.npz", "derivative.npz", "summary.json"])
@pytest.mark.parametrize("stop", [25, None], ids=["stopped", "finished"])
@pytest.mark.filterwarnings("ignore:checkpoint")
def test_damage_is_repaired(damaged, stop, tmp_path):
    job = Gradient(toy(steps=40), BOTH, "energy").checked()
    begin(job, tmp_path / "whole")
    if stop is None:
        begin(job, tmp_path / "run")
    else:
        with pytest.raises(Stopped):
            begin(job, tmp_path / "run", report=StopAfter(stop))
    file = tmp_path / "run" / damaged
    if file.exists():
        file.write_bytes(file.read_bytes()[:-9])
    simkit.resume(tmp_path / "run")
    found, whole = files(tmp_path / "run"), files(tmp_path / "whole")
    assert found["derivative.npz"] == whole["derivative.npz"] and found["summary.json"] == whole["summary.json"]


def test_segments_with_other_arrays_are_one_line(tmp_path):
    job = Gradient(toy(steps=40), BOTH, "energy").checked()
    with pytest.raises(Stopped):
        begin(job, tmp_path / "run", report=StopAfter(25))
    directory = RunDirectory.open(tmp_path / "run")
    file, seal = directory.path / "segments" / "000003.npz", directory.seal.of("segment 3")
    arrays = read_arrays(file, seal)
    for crafted in ({"status": arrays["status"]}, arrays | {"diagnosed.energy": np.zeros(3)}):
        write_arrays(file, crafted, seal)
        with pytest.raises(UserError, match=r"000003\.npz: .*; remove this file, then: simkit resume") as caught:
            simkit.resume(tmp_path / "run")
        assert "\n" not in str(caught.value)
    file.unlink()
    with pytest.warns(UserWarning, match="starting from the beginning"):
        simkit.resume(tmp_path / "run")
    begin(job, tmp_path / "whole")
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_a_run_that_fails_has_no_derivative(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS.replace("bounds = [1e-4, 0.1]", "bounds = [1e-4, 1e300]"))
    words = ["grad", str(tmp_path / "toy.toml"), "--set", "time_step=1e300", "--wrt", "frequency"]
    assert main([*words, "-o", str(tmp_path / "run")]) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    assert "turned non-finite" in told and told.endswith("its derivative is not defined")
    with pytest.raises(RunFailedError, match="turned non-finite"):
        simkit.resume(tmp_path / "run")


def test_the_command_line_reports_stored_derivatives(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    words = ["grad", str(tmp_path / "toy.toml"), "--wrt", "frequency,time_step"]
    assert main([*words, "--mode", "reverse"]) == 0
    plain = capsys.readouterr().out
    assert main([*words, "-o", str(tmp_path / "run")]) == 0
    stored = f"\nstored: {tmp_path / 'run'}\n"
    assert capsys.readouterr().out == plain + stored
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == plain + stored
    assert main(["resume", str(tmp_path / "run"), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["wrt"]) == set(BOTH)
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "derivative of toy_pendulums" in capsys.readouterr().out
    assert main(["render", str(tmp_path / "run")]) == 2
    assert "holds a derivative, which has no" in capsys.readouterr().err


def in_memory(limit, folder, **values):
    """Return the derivative within a limit, the number of its pieces, and what it says about its memory."""
    found = simkit.value_and_grad(toy(), BOTH, output=folder, memory=limit, **values)
    request = RunDirectory.open(folder).manifest["request"]
    return found, number_of_pieces(request["segments"]), request["fit"]


@pytest.mark.parametrize("objective", [None, "time_mean(energy)*final(mean(position))"])
def test_less_memory_means_more_pieces_and_the_same_derivative(objective, tmp_path):
    values = {"objective": objective, "steps": 2000, "every": 20}
    expected = simkit.value_and_grad(toy(), BOTH, mode="reverse", **values)
    wide, few, said = in_memory("1GB", tmp_path / "wide", **values)
    assert few == 20 and f"of {format_bytes(10**9)}: the run is divided into 20 pieces" in said
    needed = int(memory_in_bytes(said.partition(" of ")[0]) * 0.95)
    narrow, many, said = in_memory(needed, tmp_path / "narrow", **values)
    assert many > few and f"{many} pieces" in said and memory_in_bytes(said.partition(" of ")[0]) <= needed
    check_equal(wide, expected)
    check_equal(narrow, expected)


def test_a_derivative_within_a_limit_resumes_in_the_same_pieces(tmp_path, capsys):
    job = gradient_job(load(toy(), {"steps": 2000, "every": 20}), BOTH, None, "reverse", LIMIT)
    begin(job, tmp_path / "whole")
    request = RunDirectory.open(tmp_path / "whole").manifest["request"]
    pieces = number_of_pieces(request["segments"])
    assert pieces > 20
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(pieces + 4))
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "stopped")]) == 0
    assert f"memory: {request['fit']}" in capsys.readouterr().out
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_the_derivative_of_an_equilibrium_within_a_limit(tmp_path):
    wrt = ["rest", "stiffness"]
    expected = simkit.value_and_grad(toy(SPRINGS), wrt)
    found = simkit.value_and_grad(toy(SPRINGS), wrt, output=tmp_path / "run", memory="1GB")
    check_equal(found, expected, rtol=1e-6)
    assert "an equilibrium holds no states" in RunDirectory.open(tmp_path / "run").manifest["request"]["fit"]
    with pytest.raises(UserError, match="at least, and 10 B may be used; pass a larger memory="):
        simkit.value_and_grad(toy(SPRINGS), wrt, output=tmp_path / "more", memory=10)


@every(
    ("more", "words"),
    [
        (["--memory", "10", "-o", "run"], "and 10 B may be used; pass a larger --memory"),
        (["--memory", "much", "-o", "run"], "memory"),
        (["--check", "-o", "run"], "--check is not for a derivative that is stored"),
        (["--second", "-o", "run"], "--second is not for a derivative that is stored"),
        (["--mode", "forward", "-o", "run"], "forward mode stores no states"),
        (["--overwrite"], "--overwrite needs --output"),
        (["--objective", "nothing", "-o", "run"], "'nothing' is not an objective"),
        (["-o", "toy.toml"], "exists and is not a folder"),
    ],
)
def test_options_that_contradict_each_other_are_refused(more, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    assert main(["grad", "./toy.toml", "--wrt", "frequency", *more]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["toy.toml"]


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


def test_seeds_that_fail_are_named(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS.replace("bounds = [1e-4, 0.1]", "bounds = [1e-4, 1e300]"))
    words = ["grad", str(tmp_path / "toy.toml"), "--set", "time_step=1e300", "--wrt", "frequency", "--seeds", "9"]
    assert main(words) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    assert "turned non-finite" in told and "(seed 0, 1, 2, 3, 4 and 4 more)" in told


def test_the_matrix_is_labeled_and_equals_differences_of_the_derivative():
    found = simkit.hessian(toy(), ["time_step", "frequency"])
    assert found.dims == ("row", "column") and list(found["row"].values) == ["frequency", "time_step"]
    frequency = found.sel(row="frequency", column="frequency").item()
    h = 1e-5
    above, below = (simkit.value_and_grad(toy(frequency=1.3 + d), "frequency")[1]["frequency"] for d in (h, -h))
    assert frequency == pytest.approx((above - below) / (2 * h), rel=1e-6)
    forward, reverse = (simkit.hessian(toy(), ["time_step", "frequency"], mode=m) for m in ("forward", "reverse"))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)


def test_effect_of_stepped_contacts_on_second_derivatives_is_noted(capsys):
    few = {"steps": 20, "every": 10}
    with pytest.warns(UserWarning, match="contacts begin, stick and end at whole steps, so second derivatives"):
        simkit.hessian("sliding_block", ["speed"], **few)
    settings = [word for name, value in few.items() for word in ("--set", f"{name}={value}")]
    assert main(["grad", "sliding_block", "--wrt", "speed", "--second", "--json", *settings]) == 0
    assert "take the method events" in json.loads(capsys.readouterr().out)["note"]
    # First derivatives through a contact that lasts are those of the physics, and events have all of them.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simkit.value_and_grad("sliding_block", ["speed"], **few)
        simkit.hessian("bouncing_ball", ["launch_speed"], objective="final_position", **few)
