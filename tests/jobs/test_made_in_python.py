"""Simulations made in Python, in all uses of a named scenario."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
import simkit.export
from simkit.core.rollout import trajectory
from simkit.scenario.made_in_python import load
from tests.tables import every

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


@every(
    ("values", "message"),
    [
        ({}, "steps is missing; give steps=1000"),
        ({"steps": 10, "every": 3}, "steps = 10 is not a multiple of every = 3; use run.steps=9 or 12, or run.every=2"),
        ({"steps": 10, "gravty": 1.0}, "'gravty' is neither a setting nor a parameter .* did you mean 'gravity'"),
        ({"steps": 10, "gravity": -1.0}, "gravity = -1 is negative; choose 0 or a value above"),
        ({"steps": 10, "config.size": 3}, "'config.size' is neither a setting nor a parameter"),
        ({"steps": 10, "view": "particles"}, "needs the observed array 'position'"),
        ({"steps": 10, "name": "Two Words"}, "name = 'Two Words' is not a name"),
    ],
)
def test_bad_settings_are_one_line(values, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        simkit.run(swing(), **values)
    assert "\n" not in str(error.value)


def test_a_default_out_of_bounds_is_refused_by_runs_sweeps_and_derivatives():
    outside = swing().with_params(gravity=-1.0)
    for verb, more in (
        (simkit.run, {}),
        (simkit.sweep, {"over": {"angle": [0.1, 0.2]}}),
        (simkit.value_and_grad, {"objective": "height", "wrt": "angle"}),
    ):
        with pytest.raises(simkit.UserError, match=r"gravity\.default = -1 is negative; choose 0 or a value above"):
            verb(outside, steps=10, **more)


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
    "one axis of two lengths": (
        lambda: swing(
            observe=lambda state, params: {"motion": state["motion"], "more": jnp.zeros(3)},
            dimensions={"motion": ("part",), "more": ("part",)},
        ),
        "axis 'part' has 3 entries in 'more' and 2 elsewhere; name them apart",
    ),
    "coordinates too long": (
        lambda: swing(dimensions={"motion": ("part",)}, coordinates={"part": np.arange(3)}),
        "coordinates of 'part' are 3 values; the axis has 2 entries",
    ),
    "widths of no cell": (
        lambda: swing(dimensions={"motion": ("part",)}, coordinates={"part_widths": np.array([1.0, 0.0])}),
        "coordinates 'part_widths' are not 2 widths above 0, one for each cell",
    ),
    "quantity of nothing": (lambda: swing(quantities={"heigth": simkit.Quantity("m", "h")}), "did you mean 'height'"),
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


@every(("make", "message"), BROKEN.values(), ids=BROKEN)
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
    with pytest.raises(simkit.UserError, match=r"simulation = .* is of type function; give a simkit.Simulation"):
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


def test_other_types_than_scenarios_and_simulations_are_refused():
    with pytest.raises(simkit.UserError, match=r"of type int; give a name, .* or a simkit.Simulation"):
        simkit.run(3)


def named(*names, **changes):
    """Return a swing with further parameters, each of them a force."""
    simple = swing()

    def step(state, params):
        after = simple.step(state, params)
        return after | {"motion": after["motion"] + 1e-3 * sum(params[name] for name in names)}

    return swing(step=step, params=simple.params | {name: 1.5 for name in names}, **changes)


@every("name", ["seed", "frame", "status", "part", "place"])
def test_sweep_over_a_name_already_in_its_result_is_refused(name):
    simulation = named(name, dimensions={"motion": ("part",)}, coordinates={"place": np.arange(3)})
    with pytest.raises(simkit.UserError, match=f"over '{name}': the name '{name}' is taken"):
        simkit.sweep(simulation, {name: [1.0, 2.0]}, steps=2)


@pytest.mark.filterwarnings("error")
def test_a_run_that_is_resumed_keeps_its_values_and_says_so(tmp_path):
    simkit.run(swing(), steps=4, output=tmp_path / "run", gravity=3.0)
    with pytest.warns(
        UserWarning, match=r"continues with the values that it began with: gravity = 3\.0 \(given: 4\.0\)"
    ):
        simkit.resume(tmp_path / "run", simulation=swing().with_params(gravity=4.0))
    for same in (swing(), swing().with_params(gravity=3.0)):
        assert float(simkit.resume(tmp_path / "run", simulation=same).attrs["gravity"]) == 3.0
