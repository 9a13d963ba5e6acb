"""Progress of jobs read from their files, and conditions at which they stop."""

import shutil
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.export.data_files import data_file
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.jobs.stored_jobs import progress_of
from simkit.scenario.made_in_python import load
from simkit.storage.run_directory import RunDirectory
from tests.flow.plane_channel import plane_channel
from tests.jobs.test_progress import interrupted
from tests.jobs.test_stop_conditions import FILE
from tests.stopping import StopAfter, Stopped
from tests.toys import toy


def test_progress_of_configurations_is_summed(tmp_path):
    simkit.sweep(toy(), {"config.size": [2, 3], "frequency": [1.0, 2.0]}, output=tmp_path / "sweep")
    found = progress_of(tmp_path / "sweep")
    assert (found.words, found.kind) == ("4 of 4 members", "sweep over configurations")
    shutil.rmtree(tmp_path / "sweep" / "config_0001")
    (tmp_path / "sweep" / "summary.json").unlink()
    found = progress_of(tmp_path / "sweep")
    assert (found.words, found.fraction, found.state) == ("2 of 4 members", 0.5, "interrupted")


def test_progress_of_an_optimization_counts_iterations(tmp_path):
    with pytest.warns(UserWarning, match="used its 3 iterations"):
        simkit.optimize(toy(steps=4), "frequency", method="adam", iterations=3, output=tmp_path / "found")
    assert progress_of(tmp_path / "found").words == "3 of 3 iterations"


def test_a_finished_sweep_without_one_of_its_chunks_is_damaged_and_its_result_not_replaced_by_an_export(tmp_path):
    swept = simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, chunk=1, output=tmp_path / "sweep")
    assert progress_of(tmp_path / "sweep").state == "finished"
    with pytest.raises(UserError, match="is the result of a sweep, which no export replaces"):
        data_file(swept, "netcdf", tmp_path / "sweep" / "sweep.nc", overwrite=True)
    (tmp_path / "sweep" / "chunk_0001.npz").unlink()
    assert progress_of(tmp_path / "sweep").state == "damaged"
    simkit.resume(tmp_path / "sweep")
    assert progress_of(tmp_path / "sweep").state == "finished"


def test_reading_progress_does_not_block_a_starting_process(tmp_path):
    from simkit.jobs.runs import Run

    folder = tmp_path / "run"
    interrupted(folder, Run(toy(steps=40, every=1)), 6)
    program = "import sys, time; from simkit.storage.run_directory import is_locked\nfrom pathlib import Path\n"
    program += "print(flush=True)\nwhile True: is_locked(Path(sys.argv[1]))"
    looking = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE)
    try:
        looking.stdout.readline()
        for _ in range(20):
            with RunDirectory.open(folder).locked():
                time.sleep(0.001)
    finally:
        looking.kill()
        looking.wait()


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_progress_of_a_run_counts_steps(tmp_path):
    from simkit.jobs.runs import Run

    folder = tmp_path / "run"
    interrupted(folder, Run(toy(steps=40, every=1)), 6)
    before = bytes_of(folder)
    found = progress_of(folder)
    assert (found.state, found.kind, found.scenario) == ("interrupted", "run", "toy_pendulums")
    assert 0 < found.fraction < 1
    assert found.words == f"{round(40 * found.fraction)} of 40 steps"
    assert (found.failed, found.seconds_left) == ([], None)
    assert bytes_of(folder) == before
    simkit.resume(folder)
    found = progress_of(folder)
    assert (found.state, found.fraction, found.words) == ("finished", 1.0, "40 of 40 steps")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "falling.toml"
    path.write_text(FILE)
    return path


def test_a_run_ends_at_the_first_step_where_the_condition_holds(file):
    every = simkit.run(file, every=1)
    height = every["height"].values
    assert every.attrs["status"] == "stopped"
    assert height[-1] < 0.75 <= height[-2] and len(height) < 301
    coarse = simkit.run(file)
    assert float(coarse["time"][-1]) == float(every["time"][-1])
    np.testing.assert_array_equal(coarse["height"][-1], height[-1])


def test_a_stop_by_a_condition_is_no_failure(file, tmp_path, capsys):
    assert main(["run", str(file), "--no-render", "--output", str(tmp_path / "run")]) == 0
    assert "falling stopped where its condition held" in capsys.readouterr().out
    assert main(["validate", str(file)]) == 0
    assert main(["run", str(file), "--no-render", "--set", "stop=height < -5", "--output", str(tmp_path / "all")]) == 0
    assert simkit.open_run(tmp_path / "all").attrs["status"] == "stopped"


def test_a_resumed_run_stops_at_the_same_step(file, tmp_path):
    with pytest.raises(Stopped):
        begin(Run(load(file)), tmp_path / "run", report=StopAfter(2))
    resumed = simkit.resume(tmp_path / "run")
    np.testing.assert_array_equal(resumed["height"], simkit.run(file)["height"])


def test_members_of_a_sweep_stop_each_at_its_own_step(file):
    swept = simkit.sweep(file, over={"launch_height": [1.0, 3.0]})
    for place, height in enumerate((1.0, 3.0)):
        alone = simkit.run(file, launch_height=height)
        member = swept.isel(launch_height=place, seed=0)
        assert float(member["time"][-1]) == float(alone["time"][-1])
        assert str(member["status"].values) == "stopped"


def test_derivatives_are_those_of_the_steps_taken(file):
    value, slope = simkit.value_and_grad(file, ["launch_speed"], objective="end")
    time = float(simkit.run(file)["time"][-1])
    # Without drag the distance is that of the center's speed along x, at the steps that were taken.
    assert float(slope["launch_speed"]) == pytest.approx(float(value) / 8.0, rel=1e-5)
    assert float(value) == pytest.approx(8.0 * np.cos(np.radians(60.0)) * time, rel=1e-5)


@pytest.mark.parametrize("reduce", ["mean", "root_mean_square", "maximum", "sum"])
def test_objectives_reduce_the_frames_that_the_run_stores(file, reduce):
    """The ball moves along x at its launch speed, so that the derivative of every reduction is its share of it."""
    stored = simkit.run(file, precision="float64")
    path = stored["position_x"].values
    assert len(path) < 31
    by_hand = {"mean": np.mean, "root_mean_square": lambda x: np.sqrt(np.mean(x**2)), "maximum": np.max, "sum": np.sum}
    expected = float(by_hand[reduce](path))
    text = file.read_text().replace('expression = "position_x"', f'quantity = "position_x", reduce = "{reduce}"')
    file.write_text(text)
    scenario = load(file, {"precision": "float64"})
    value, slope = simkit.value_and_grad(scenario, "launch_speed", objective="end")
    assert value == pytest.approx(expected, rel=1e-12)
    assert slope["launch_speed"] == pytest.approx(
        expected / float(scenario.parameters["launch_speed"].default), rel=1e-9
    )


def test_expressions_and_functions_of_frames_count_those_that_the_run_stores(file):
    stored = simkit.run(file, precision="float64")
    path, time = stored["position_x"].values, stored["time"].values
    scenario = load(file, {"precision": "float64"})
    text = "time_mean(position_x) + 10*time_mean(position_x, after=0.25) + 100*time_rms(position_x)"
    expected = path.mean() + 10 * path[time > 0.2499].mean() + 100 * np.sqrt((path**2).mean())
    assert simkit.value_and_grad(scenario, "launch_speed", objective=text)[0] == pytest.approx(expected, rel=1e-12)

    def counted(frames, diagnostics, stored):
        return jnp.sum(diagnostics["position_x"], where=stored)

    assert simkit.value_and_grad(scenario, "launch_speed", objective=counted)[0] == pytest.approx(path.sum(), rel=1e-12)


def test_a_condition_with_a_value_per_place_is_refused():
    from simkit.core.expressions.measures import stopped_when

    channel = plane_channel((4, 4))
    assert isinstance(stopped_when(channel, "max(u) > 2", "stop"), Simulation)
    with pytest.raises(UserError, match="stop: 'u > 2' is one for each x and y; reduce it by max or min"):
        stopped_when(channel, "u > 2", "stop")
