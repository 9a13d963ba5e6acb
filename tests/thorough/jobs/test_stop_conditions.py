"""Conditions at which a run stops: in runs, resumed ones, sweeps and derivatives."""

import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.scenario.made_in_python import load
from tests.flow.plane_channel import plane_channel
from tests.jobs.test_stop_conditions import FILE
from tests.stopping import StopAfter, Stopped
from tests.toys import toy


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
    text = file.read_text().replace('expression = "position_x"', f'quantity = "position_x"\nreduce = "{reduce}"')
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


def test_all_frames_are_stored_where_no_stop_is_possible():
    def counted(frames, diagnostics, stored):
        return jnp.sum(diagnostics["energy"], where=stored)

    expected = simkit.value_and_grad(toy(), "frequency", objective=lambda _, found: jnp.sum(found["energy"]))
    assert simkit.value_and_grad(toy(), "frequency", objective=counted) == expected


def test_a_condition_with_a_value_per_place_is_refused():
    from simkit.core.expressions.measures import stopped_when

    channel = plane_channel((4, 4))
    assert isinstance(stopped_when(channel, "max(u) > 2", "stop"), Simulation)
    with pytest.raises(UserError, match="stop: 'u > 2' is one for each x and y; reduce it by max or min"):
        stopped_when(channel, "u > 2", "stop")
