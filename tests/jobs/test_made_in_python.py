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
from simkit.scenario.loading import load
from tests.differences import central_difference
from tests.stopping import StopAfter, Stopped

TIME_STEP = 0.05


def swing(*, stronger=1.0, dtype=float, **changes):
    """Return a damped swing, made without a factory."""

    def init(params, key):
        start = jnp.stack([params["angle"], jnp.zeros_like(params["angle"])])
        return {"motion": start + 1e-3 * jax.random.normal(key, (2,), start.dtype), "count": jnp.int32(0)}

    def step(state, params):
        angle, velocity = state["motion"]
        pull = -stronger * params["gravity"] * jnp.sin(angle) - params["friction"].sum() * velocity
        velocity = velocity + TIME_STEP * pull
        return {"motion": jnp.stack([angle + TIME_STEP * velocity, velocity]), "count": state["count"] + 1}

    simulation = simkit.Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"motion": state["motion"]},
        diagnose=lambda state, params: {
            "time": TIME_STEP * state["count"].astype(state["motion"].dtype),
            "height": 1 - jnp.cos(state["motion"][0]),
        },
        params={
            "gravity": simkit.Parameter(2.0, (0.0, np.inf), "1/s^2", "gravity over length"),
            "angle": jnp.asarray(0.5, dtype),
            "friction": jnp.asarray([0.05, 0.1], dtype),
        },
        quantities={"height": simkit.Quantity("m", "of the mass")},
    )
    return dataclasses.replace(simulation, **changes)


def bytes_of(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_run_is_the_trajectory_with_units_and_meanings():
    simulation = swing()
    found = simkit.run(simulation, steps=40, every=10, seed=3, gravity=3.0, name="swing")
    params = simulation.params | {"gravity": jnp.asarray(3.0)}
    _, frames, diagnostics = jax.jit(trajectory(simulation, 40, 10))(params, jax.random.key(3))
    np.testing.assert_array_equal(found["motion"], frames["motion"])
    np.testing.assert_array_equal(found["height"], diagnostics["height"])
    assert found["height"].attrs == {"units": "m", "long_name": "of the mass"}
    assert (found.attrs["scenario"], found.attrs["gravity"], found.attrs["seed"]) == ("swing", 3.0, 3)
    assert found.attrs["precision"] == "float32"


def test_default_number_of_frames_is_about_a_hundred():
    assert load(swing(), {"steps": 1000}).run.every == 10
    assert load(swing(), {"steps": 97}).run.every == 1
    assert load(swing(), {"steps": 5000, "every": 5}).run.every == 5


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "steps is missing; give steps=1000"),
        ({"steps": 0}, "steps = 0 is out of range"),
        ({"steps": 10, "every": 3}, "run.steps = 10 is not a multiple of run.every = 3; choose 9 or 12"),
        ({"steps": 10, "gravty": 1.0}, "'gravty' is neither a setting nor a parameter .* did you mean 'gravity'"),
        ({"steps": 10, "gravity": -1.0}, "gravity = -1 is negative; choose 0 or a value above"),
        ({"steps": 10, "angle": [1.0, 2.0]}, "does not have the default's shape"),
        ({"steps": 10, "config.size": 3}, "'config.size' is neither a setting nor a parameter"),
        ({"steps": 10, "program": "x"}, "'program' is neither a setting nor a parameter"),
        ({"steps": 10, "view": "film"}, "render.view = 'film' is not one of"),
        ({"steps": 10, "view": "particles"}, "needs the observed array 'position'"),
        ({"steps": 10, "quantity": "motion"}, "render.quantity = 'motion' is not a diagnostic"),
        ({"steps": 10, "name": "Two Words"}, "name = 'Two Words' is not a name"),
        ({"steps": 10, "seed": -1}, "run.seed = -1 is out of range"),
    ],
)
def test_bad_settings_are_one_line(values, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        simkit.run(swing(), **values)
    assert "\n" not in str(error.value)


def with_start(**leaves):
    """Return a swing with another initial state."""
    simulation = swing()
    return dataclasses.replace(simulation, init=lambda params, key: simulation.init(params, key) | leaves)


def told(name, value):
    """Return a swing with another ``observe`` or ``diagnose``."""
    return swing(**{name: lambda state, params: value(state)})


BROKEN = {
    "integer in the state": (
        lambda: with_start(count=0),
        r"init gives state\['count'\] as an integer; make it an array",
    ),
    "step changes a type": (
        lambda: swing(step=lambda state, params: state | {"count": state["count"] + 0.5}),
        r"step changes state\['count'\] from int32\[\] to float32\[\]",
    ),
    "step loses the state": (
        lambda: swing(step=lambda state, params: state["motion"]),
        "step gives another structure than init",
    ),
    "list observed": (
        lambda: told("observe", lambda state: {"a": [state["count"]]}),
        "observe gives 'a' as a list; return an array",
    ),
    "array observed": (
        lambda: told("observe", lambda state: state["motion"]),
        "observe gives .* return a dictionary of arrays",
    ),
    "number diagnosed": (lambda: told("diagnose", lambda state: {"one": 1.0}), "diagnose gives 'one' as a float"),
    "array diagnosed": (
        lambda: told("diagnose", lambda state: {"a": state["motion"]}),
        r"diagnose gives 'a' of shape \(2,\)",
    ),
    "name of two words": (
        lambda: told("diagnose", lambda state: {"two words": state["count"]}),
        "'two words' is not a name",
    ),
    "parameter of two words": (lambda: swing(params={"two words": 1.0}), "'two words' is not a name"),
    "dimensions of nothing": (
        lambda: swing(dimensions={"moton": ("part",)}),
        "'moton', which is not observed; did you mean 'motion'",
    ),
    "too many dimensions": (
        lambda: swing(dimensions={"motion": ("a", "b")}),
        r"its shape is \(2,\), give a tuple of 1 names",
    ),
    "dimension in a string": (lambda: swing(dimensions={"motion": "part"}), "give a tuple of 1 names"),
    "dimension of time": (
        lambda: swing(dimensions={"motion": ("time",)}),
        "has an axis named time, a reserved name",
    ),
    "coordinates too long": (
        lambda: swing(dimensions={"motion": ("part",)}, coordinates={"part": np.arange(3)}),
        "coordinates of 'part' are 3 values; the axis has 2 entries",
    ),
    "widths of no cell": (
        lambda: swing(dimensions={"motion": ("part",)}, coordinates={"part_widths": np.array([1.0, 0.0])}),
        "coordinates 'part_widths' are not 2 widths above 0, one for each cell",
    ),
    "quantity of nothing": (
        lambda: swing(quantities={"heigth": simkit.Quantity("m", "h")}),
        "did you mean 'height'",
    ),
    "status of floats": (
        lambda: swing(status=lambda state, params: state["motion"][0]),
        "simulation: status gives float32; return the integer of a simkit.Status",
    ),
    "status of several": (
        lambda: swing(status=lambda state, params: jnp.zeros(2, jnp.int32)),
        r"status gives an array of shape \(2,\); return one integer",
    ),
    "ensemble": (
        lambda: simkit.ensemble(swing()),
        "an ensemble starts from one key per member .* or give the simulation itself to simkit.sweep",
    ),
    "quantity in a tuple": (lambda: swing(quantities={"height": ("m", "h")}), "is of type tuple; write Quantity"),
}


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN)
def test_inconsistent_record_gives_one_line(make, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        simkit.run(make(), steps=10)
    assert "\n" not in str(error.value)


def test_parameters_and_simulations_of_a_wrong_type_give_one_line(tmp_path):
    with pytest.raises(simkit.UserError, match=r"bounds = 10.0 are not \(low, high\)"):
        simkit.Parameter(1.0, 10.0)
    with pytest.raises(simkit.UserError, match=r"bounds = \(2, 1\) are not"):
        simkit.Parameter(1.0, (2, 1))
    with pytest.raises(simkit.UserError, match="params are of type list; give a dictionary"):
        swing(params=[1.0])
    with pytest.raises(simkit.UserError, match=r"simulation is of type function; give a simkit.Simulation"):
        simkit.resume(tmp_path, simulation=swing)
    with pytest.raises(simkit.UserError, match=r"precision of a simulation is that of its parameters; make it inside"):
        simkit.run(swing(), steps=1, precision="float64")


def test_objective_must_be_named_where_there_are_several():
    simulation = swing().with_quantities(whole=lambda state, params: state["motion"].sum())
    with pytest.raises(simkit.UserError, match="the objective is missing; give objective= one of height, whole"):
        simkit.optimize(simulation, "gravity", steps=2)
    without = dataclasses.replace(swing(), diagnose=lambda state, params: {"time": jnp.float32(0)}, quantities={})
    with pytest.raises(simkit.UserError, match=r"no objectives; give it one with simulation.with_quantities"):
        simkit.value_and_grad(without, "gravity", steps=2)


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


def test_other_types_than_scenarios_and_simulations_are_refused():
    with pytest.raises(simkit.UserError, match=r"int is no scenario; give a name, .* or a simkit.Simulation"):
        simkit.run(3)


def test_shell_draws_a_stored_run_and_says_how_to_finish_one(tmp_path, capsys):
    with pytest.raises(Stopped):
        begin(Run(load(swing(), {"steps": 400, "every": 4})), tmp_path / "run", report=StopAfter(1))
    assert main(["resume", str(tmp_path / "run")]) == 2
    assert "hand it over with simkit.resume(folder, simulation=...)" in capsys.readouterr().err
    assert main(["render", str(tmp_path / "run"), "--format", "png"]) == 0
    assert (tmp_path / "run" / "simulation.png").stat().st_size > 1000


def named(*names, **changes):
    """Return a swing with further parameters, each of them a force."""
    simple = swing()

    def step(state, params):
        after = simple.step(state, params)
        return after | {"motion": after["motion"] + 1e-3 * sum(params[name] for name in names)}

    return swing(step=step, params=simple.params | {name: 1.5 for name in names}, **changes)


@pytest.mark.parametrize("name", ["seed", "frame", "status", "part", "place"])
def test_sweep_over_a_name_already_in_its_result_is_refused(name):
    simulation = named(name, dimensions={"motion": ("part",)}, coordinates={"place": np.arange(3)})
    with pytest.raises(simkit.UserError, match=f"over '{name}': the result has an axis or array of that name already"):
        simkit.sweep(simulation, {name: [1.0, 2.0]}, steps=2)


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


@pytest.mark.filterwarnings("error")
def test_a_run_that_is_resumed_keeps_its_values_and_says_so(tmp_path):
    simkit.run(swing(), steps=4, output=tmp_path / "run", gravity=3.0)
    with pytest.warns(
        UserWarning, match=r"continues with the values that it began with: gravity = 3\.0 \(given: 4\.0\)"
    ):
        simkit.resume(tmp_path / "run", simulation=swing().with_params(gravity=4.0))
    for same in (swing(), swing().with_params(gravity=3.0)):
        assert float(simkit.resume(tmp_path / "run", simulation=same).attrs["gravity"]) == 3.0


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
