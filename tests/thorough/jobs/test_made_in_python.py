"""Simulations made in Python, in all uses of a named scenario."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.core.gradient import relative_difference
from simkit.core.parameter import POSITIVE
from simkit.core.rollout import trajectory
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.jobs.sweeps import Sweep
from simkit.scenario.made_in_python import load
from tests.differences import central_difference
from tests.jobs.test_made_in_python import named, swing
from tests.stopping import StopAfter, Stopped


def bytes_of(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_precision_is_that_of_the_parameters(x64):
    assert load(swing(dtype=jnp.float64), {"steps": 1}).run.precision == "float64"
    with jax.enable_x64(False):
        found = simkit.run(swing(dtype=jnp.float32), steps=2)
    assert found["height"].dtype == np.float32 and found.attrs["precision"] == "float32"


def test_sweep_gives_the_runs(tmp_path):
    over = {"gravity": [1.0, 2.5]}
    found = simkit.sweep(swing(), over, seeds=2, steps=20, every=5, output=tmp_path / "sweep")
    assert found["height"].dims == ("gravity", "seed", "frame") and found["gravity"].attrs["units"] == "1/s^2"
    alone = simkit.run(swing(), steps=20, every=5, gravity=2.5, seed=1)
    np.testing.assert_allclose(found["height"].sel(gravity=2.5, seed=1), alone["height"], rtol=1e-6)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_equal_central_differences(mode, x64):
    simulation = swing(dtype=jnp.float64)
    names = list(simulation.params)
    value, derivative = simkit.value_and_grad(simulation, names, objective="height", mode=mode, steps=20)

    def height(params):
        return trajectory(simulation, 20, 20)(params, jax.random.key(0))[2]["height"][-1]

    assert value == pytest.approx(float(height(simulation.params)), rel=1e-12)
    for name, expected in central_difference(height, simulation.params, names).items():
        assert relative_difference(derivative[name], expected) < 1e-7


def test_objective_may_be_a_function():
    value, _ = simkit.value_and_grad(swing(), "gravity", objective=lambda frames, told: told["height"].max(), steps=20)
    assert value == pytest.approx(float(simkit.run(swing(), steps=20)["height"].max()))


def test_optimization_keeps_a_bound_on_one_side():
    # The height at a fixed time decreases with gravity down to 0.0: the optimum is outside the bound.
    found = simkit.optimize(
        swing().with_quantities(loss=lambda state, params: params["gravity"] + 0 * state["motion"].sum()),
        "gravity",
        objective="loss",
        method="adam",
        learning_rate=1.0,
        iterations=20,
        steps=2,
    )
    assert (found["gravity"] >= 0).all() and found["gravity"][-1] < 0.01


def test_interrupted_job_resumes_bit_for_bit_with_its_simulation_only(tmp_path):
    scenario = load(swing(), {"steps": 400, "every": 1})
    with pytest.raises(Stopped):
        begin(Run(scenario), tmp_path / "stopped", report=StopAfter(2))
    for simulation, message in (
        (None, "made in Python and is not in the file; hand it over with simkit.resume"),
        (swing(stronger=2.0), "began with another simulation"),
        (swing(step=lambda state, params: state), "began with another simulation"),
        (swing().with_quantities(angle=lambda state, params: state["motion"][0]), "began with another simulation"),
    ):
        with pytest.raises(simkit.UserError, match=message):
            simkit.resume(tmp_path / "stopped", simulation=simulation)
    resumed = simkit.resume(tmp_path / "stopped", simulation=swing())
    whole = simkit.run(swing(), steps=400, every=1, output=tmp_path / "whole")
    xarray.testing.assert_identical(resumed, whole)
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")
    # A finished run is read without the simulation.
    xarray.testing.assert_identical(simkit.resume(tmp_path / "whole"), simkit.open_run(tmp_path / "whole"))


def test_interrupted_sweep_resumes(tmp_path):
    scenario = load(swing(), {"steps": 20})
    over = {"gravity": (1.0, 2.0, 3.0)}
    with pytest.raises(Stopped):
        begin(Sweep(scenario, over, chunk=1), tmp_path / "stopped", report=StopAfter(1))
    resumed = simkit.resume(tmp_path / "stopped", simulation=swing())
    xarray.testing.assert_identical(resumed, begin(Sweep(scenario, over, chunk=1), None))


def test_run_of_a_named_simulation_refuses_another_one(tmp_path):
    simkit.run("bouncing_ball", steps=2, every=1, output=tmp_path / "run")
    with pytest.raises(simkit.UserError, match="which has a name; leave simulation= out"):
        simkit.resume(tmp_path / "run", simulation=swing())


def test_exported_program_agrees(tmp_path):
    exported = simkit.export.program(swing(), tmp_path / "out", what="final", steps=4, name="swing")
    assert exported.passed and exported.runtimes[0].largest_error < 1e-5


def test_added_quantities_extend_or_replace_existing_ones():
    simulation = swing().with_quantities(
        height=lambda state, params: params["gravity"] * state["motion"][0],
        twice=lambda state, params: 2 * state["motion"],
        whole=lambda state, params: state["motion"].sum(),
    )
    found = simkit.run(simulation, steps=3)
    np.testing.assert_allclose(found["twice"], 2 * found["motion"])
    np.testing.assert_allclose(found["height"], 2.0 * found["motion"][:, 0], rtol=1e-6)
    np.testing.assert_allclose(found["whole"], found["motion"].sum("motion_0"), rtol=1e-6)
    with pytest.raises(simkit.UserError, match="quantity 'pair' gives tuple; return one array"):
        swing().with_quantities(pair=lambda state, params: (state["count"], state["count"]))


def test_simulation_without_diagnostics_runs_and_is_not_drawn(tmp_path, capsys):
    bare = simkit.Simulation(
        init=lambda params, key: {"x": params["scale"] * jnp.ones(3)},
        step=lambda state, params: {"x": 0.5 * state["x"]},
        observe=lambda state, params: {"x": state["x"]},
        diagnose=lambda state, params: {},
        params={"scale": 2.0},
    )
    run = simkit.run(bare, steps=2, every=1, output=tmp_path / "run")
    np.testing.assert_array_equal(run["x"][:, 0], [2.0, 1.0, 0.5])
    assert simkit.open_run(tmp_path / "run").equals(run)
    assert simkit.sweep(bare, {"scale": [1.0, 4.0]}, steps=2)["x"].values[:, 0, 0].tolist() == [0.25, 1.0]
    value, derivative = simkit.value_and_grad(bare, "scale", objective=lambda frames, _: frames["x"][-1].sum(), steps=2)
    assert (value, derivative["scale"]) == (1.5, 0.75)
    message = "there is nothing to draw: no number is diagnosed, and no field, particles or bodies are observed; add"
    with pytest.raises(simkit.UserError, match=message):
        simkit.picture(run)
    assert main(["render", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert "<img" not in run._repr_html_()
    with pytest.raises(simkit.UserError, match=r"render\.quantity = 'y' is not a diagnostic of"):
        simkit.run(bare, steps=2, quantity="y")


def test_shell_draws_a_stored_run_and_says_how_to_finish_one(tmp_path, capsys):
    with pytest.raises(Stopped):
        begin(Run(load(swing(), {"steps": 400, "every": 4})), tmp_path / "run", report=StopAfter(1))
    assert main(["resume", str(tmp_path / "run")]) == 2
    assert "hand it over with simkit.resume(folder, simulation=...)" in capsys.readouterr().err
    assert main(["render", str(tmp_path / "run"), "--format", "png"]) == 0
    assert (tmp_path / "run" / "simulation.png").stat().st_size > 1000


def test_parameter_with_the_name_of_an_attribute_is_stored_with_a_prefix():
    names = ("seed", "status", "title", "steps")
    found = simkit.run(named(*names), steps=2, **{"seed": 3, "title": "A swing", "params.seed": 2.5})
    assert (found.attrs["seed"], found.attrs["title"], found.attrs["status"]) == (3, "A swing", "ok")
    assert [found.attrs[f"params.{name}"] for name in names] == [2.5, 1.5, 1.5, 1.5]


def test_best_value_at_an_open_bound_is_reported_as_zero():
    gravity = simkit.Parameter(2.0, (POSITIVE[0], 5.0), "1/s^2", "gravity over length")
    simulation = swing(params=swing().params | {"gravity": gravity}).with_quantities(
        loss=lambda state, params: params["gravity"] + 0 * state["motion"].sum()
    )
    found = simkit.optimize(simulation, "gravity", objective="loss", iterations=30, steps=1)
    assert found.attrs["at_bounds"].endswith(
        "ends at its lower bound 0, which it must stay above, toward which the objective still improves"
    )
    with pytest.raises(simkit.UserError, match=r"gravity = 0 is not above 0; choose a value in \(0, 5\]"):
        simkit.run(simulation, steps=1, gravity=0.0)


def test_quantities_with_names_of_the_result_get_a_prefix():
    simulation = swing().with_quantities(
        status=lambda state, params: 1.0 * state["count"],
        frame=lambda state, params: 2.0 * state["count"],
        seed=lambda state, params: state["motion"],
    )
    found = simkit.sweep(simulation, {"gravity": [1.0, 2.0]}, steps=2, every=1)
    assert (found["status"] == "ok").all() and found["seed"] == [0]
    assert found["diagnosed_status"].values[0, 0].tolist() == [0, 1, 2]
    assert found["diagnosed_frame"].values[1, 0].tolist() == [0, 2, 4]
    np.testing.assert_array_equal(found["final_seed"], found["motion"])


def gate():
    """A number that counts up while it is below a limit: a function of the limit in steps."""
    return simkit.Simulation(
        init=lambda params, key: jnp.zeros_like(params["limit"]),
        step=lambda state, params: state + jnp.where(state < params["limit"], params["rate"], 0.0),
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"sum": state},
        params={"limit": 1.3, "rate": 0.5},
    )


@pytest.mark.filterwarnings("error")
def test_a_zero_derivative_in_reverse_mode_alone_is_taken_as_it_is():
    @jax.custom_vjp
    def kept(x):
        return x

    kept.defvjp(lambda x: (x, None), lambda _, slope: (0 * slope,))
    simulation = dataclasses.replace(gate(), init=lambda params, key: kept(params["limit"]))
    _, derivative = simkit.value_and_grad(simulation, "limit", steps=2, objective="final(sum)", mode="reverse")
    assert derivative == {"limit": 0}


def test_a_derivative_that_is_zero_between_steps_says_so(capsys):
    with pytest.warns(UserWarning, match="depends on limit in steps only"):
        value, derivative = simkit.value_and_grad(gate(), ["limit", "rate"], steps=5, objective="final(sum)")
    assert value == 1.5 and derivative == {"limit": 0, "rate": 3}
    with pytest.warns(UserWarning, match="depends on limit in steps only"):
        simkit.optimize(gate(), ["limit"], steps=5, objective="final(sum)", iterations=2)
