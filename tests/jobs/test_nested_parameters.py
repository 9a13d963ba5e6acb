"""Nested parameters, in all uses of flat ones: the same simulation in both forms gives the same results."""

import dataclasses
import json
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.cli.output import show
from simkit.core import paths
from simkit.core.control import controlled
from simkit.core.dependence import idle_parameters
from simkit.core.gradient import with_derivative
from simkit.core.in_flight import in_flight
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.recording import beside_recording, standard_errors
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status
from simkit.jobs.gradients import Gradient
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Optimization
from simkit.jobs.runs import Run
from simkit.jobs.sweeps import Sweep
from simkit.scenario import registry
from simkit.scenario.json_schema import schema_of
from simkit.scenario.loading import load
from tests.core.toys import descent
from tests.differences import central_difference
from tests.stopping import StopAfter, Stopped

TIME_STEP = 0.1
DTYPES = ["float32", "float64"]


class Layer(NamedTuple):
    weight: Any
    bias: Any


# Path in the nested form of each parameter of the flat form.
PLACES = {
    "gravity": "gravity",
    "scale": "closure.scale",
    "first": "closure.layers.0.weight",
    "shift": "closure.layers.0.bias",
    "last": "closure.layers.1.weight",
    "level": "closure.layers.1.bias",
}
BRANCH = [name for name in PLACES if name not in ("gravity", "scale")]


def in_tree(values):
    """Return the nested form of flat values."""
    layers = [Layer(values["first"], values["shift"]), Layer(values["last"], values["level"])]
    return {"gravity": values["gravity"], "closure": {"scale": values["scale"], "layers": layers}}


def pull_of(params, motion):
    """Return the acceleration by a spring and a small network."""
    (first, shift), (last, level) = params["closure"]["layers"]
    network = last @ jnp.tanh(first @ motion + shift) + level
    return -params["gravity"] * motion[0] + params["closure"]["scale"] * network


def mass(*, nested: bool, dtype: str = "float32") -> simkit.Simulation:
    """Return a mass on a spring with a network as closure, its parameters nested or flat."""
    form = (lambda params: params) if nested else in_tree

    def init(params, key):
        start = jnp.asarray([1.0, 0.0], params["gravity"].dtype)
        return {"motion": start + 0.01 * jax.random.normal(key, (2,), start.dtype), "count": jnp.int32(0)}

    def step(state, params):
        place, velocity = state["motion"]
        velocity = velocity + TIME_STEP * pull_of(form(params), state["motion"])
        return {"motion": jnp.stack([place + TIME_STEP * velocity, velocity]), "count": state["count"] + 1}

    values = {
        "gravity": 2.0,
        "scale": 0.7,
        "first": np.linspace(-0.4, 0.5, 6).reshape(3, 2),
        "shift": np.asarray([0.1, 0.0, -0.1]),
        "last": np.asarray([0.3, -0.2, 0.4]),
        "level": 0.05,
    }
    with jax.enable_x64(dtype == "float64"):
        given = {
            name: simkit.Parameter(np.asarray(value, dtype), (-3.0, 3.0), "1", f"the {name}")
            for name, value in values.items()
        }
        return simkit.Simulation(
            init=init,
            step=step,
            observe=lambda state, params: {"motion": state["motion"]},
            diagnose=lambda state, params: {
                "time": TIME_STEP * state["count"].astype(state["motion"].dtype),
                "off": (state["motion"][0] - 0.2) ** 2,
            },
            params=in_tree(given) if nested else given,
        )


def pair(dtype):
    return mass(nested=False, dtype=dtype), mass(nested=True, dtype=dtype)


def assert_same(flat, nested):
    """Assert that a data set of the nested form equals that of the flat one, except for the names of parameters."""
    known = {name: PLACES.get(name, name) for name in (*flat.variables, *flat.dims, *flat.attrs)}
    for prefix in ("best_", "bound_"):
        known |= {prefix + name: prefix + place for name, place in PLACES.items()}
        known |= {f"{prefix}{n}_{a}": f"{prefix}{place}_{a}" for n, place in PLACES.items() for a in (0, 1)}
    renamed = flat.rename({old: new for old, new in known.items() if old in {*flat.variables, *flat.dims}})
    xarray.testing.assert_equal(renamed, nested)
    for name, variable in renamed.variables.items():
        assert variable.dtype == nested[name].dtype and variable.attrs == nested[name].attrs
    attributes = {known[name]: value for name, value in flat.attrs.items()}
    assert list(attributes) == list(nested.attrs)
    for name in set(attributes) - {"config"}:
        np.testing.assert_array_equal(attributes[name], nested.attrs[name])


@pytest.mark.parametrize("dtype", DTYPES)
def test_runs_and_overrides_by_leaf_and_by_branch_are_the_same(dtype):
    flat, nested = pair(dtype)
    changed = {"first": np.full((3, 2), 0.25), "shift": [0.5, 0.25, 0.125], "last": [1.0, 0.5, 0.0], "level": 0.5}
    expected = simkit.run(flat, steps=6, scale=0.5, **changed)
    by_leaf = {PLACES[name]: value for name, value in changed.items()}
    layers = in_tree({"gravity": 2.0, "scale": 0.5} | changed)["closure"]["layers"]
    for values in (
        by_leaf | {"closure.scale": 0.5},
        {"params.closure.scale": 0.5, "closure.layers": layers},
        {"closure": {"scale": np.float32(0.5), "layers": layers}},
    ):
        assert_same(expected, simkit.run(nested, steps=6, **values))
    assert_same(expected, simkit.run(nested.with_params(by_leaf, **{"closure.scale": 0.5}), steps=6))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sweeps_are_the_same(dtype):
    flat, nested = pair(dtype)
    expected = simkit.sweep(flat, {"scale": [0.5, 0.7, 0.9], "level": [0.0, 0.1]}, seeds=2, steps=4, chunk=4)
    over = {"closure.scale": [0.5, 0.7, 0.9], "closure.layers.1.bias": [0.0, 0.1]}
    assert_same(expected, simkit.sweep(nested, over, seeds=2, steps=4, chunk=4))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_by_leaf_and_by_branch_are_those_of_the_flat_form_and_central_differences(dtype, mode):
    flat, nested = pair(dtype)
    value, expected = simkit.value_and_grad(flat, list(PLACES), objective="off", mode=mode, steps=5)
    for wrt in (list(PLACES.values()), ["gravity", "closure"], ["closure.layers", "gravity", "closure.scale"]):
        found, derivative = simkit.value_and_grad(nested, wrt, objective="off", mode=mode, steps=5)
        assert found == value and set(derivative) == set(PLACES.values())
        for name, place in PLACES.items():
            assert derivative[place].dtype == np.dtype(dtype)
            np.testing.assert_allclose(derivative[place], expected[name], rtol=1e-5 if dtype == "float32" else 1e-12)
    if dtype == "float64":
        with jax.enable_x64(True):

            def off(params):
                return trajectory(flat, 5, 5)(params, jax.random.key(0))[2]["off"][-1]

            for name, difference in central_difference(off, flat.params, list(PLACES)).items():
                np.testing.assert_allclose(derivative[PLACES[name]], difference, rtol=1e-7, atol=1e-10)


def test_checks_of_the_branch_agree(x64):
    nested = mass(nested=True, dtype="float64")
    objective = simkit.Objective(nested, "off", 5)
    checked = simkit.check_gradient(objective, nested.params, jax.random.key(0), "closure")
    assert list(checked.verdict) == sorted(set(PLACES.values()) - {"gravity"})
    assert set(checked.verdict.values()) == {"agrees"}
    # The derivative of the whole tree by JAX directly.
    tree = jax.jit(jax.grad(objective))(nested.params, jax.random.key(0))
    for place, slope in paths.leaves(tree["closure"], "closure").items():
        np.testing.assert_allclose(checked.derivative[place], slope, rtol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_members_whose_branch_differs_equal_a_loop(dtype):
    with jax.enable_x64(dtype == "float64"):
        nested = mass(nested=True, dtype=dtype)
        keys = jax.random.split(jax.random.key(0), 3)
        factors = jnp.asarray([0.5, 1.0, 2.0], dtype)
        spread = jax.tree.map(
            lambda leaf: factors.reshape(-1, *[1] * leaf.ndim) * leaf, nested.params["closure"]["layers"]
        )
        params = nested.params | {"closure": nested.params["closure"] | {"layers": spread}}
        many = simkit.ensemble(nested, over=["closure.layers"])
        _, frames, told = trajectory(many, 6, 2)(params, keys)
        derive = with_derivative(Objective(nested, "off", 6), ["closure.layers"])
        axes = paths.axes(nested.params, [PLACES[name] for name in BRANCH])
        _, slopes = jax.jit(jax.vmap(derive, (axes, 0)))(params, keys)
        for member in range(3):
            own = jax.tree.map(lambda leaf, i=member: leaf[i], spread)
            alone = nested.with_params({"closure.layers": own})
            _, frame, one = trajectory(alone, 6, 2)(alone.params, keys[member])
            tolerance = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 2e-6, "atol": 1e-7}
            np.testing.assert_allclose(frames["motion"][:, member], frame["motion"], **tolerance)
            np.testing.assert_allclose(told["off"][:, member], one["off"], **tolerance)
            slope = derive(alone.params, keys[member])[1]
            for name, batch in slopes.items():
                tolerance = {"rtol": 1e-11} if dtype == "float64" else {"rtol": 1e-4, "atol": 1e-6}
                np.testing.assert_allclose(batch[member], slope[name], **tolerance)


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:.*without converging")
def test_optimizations_by_branch_are_those_by_leaf_and_of_the_flat_form(dtype, method):
    flat, nested = pair(dtype)
    asked = {"objective": "off", "method": method, "iterations": 3, "steps": 5}
    expected = simkit.optimize(flat, ["gravity", *BRANCH], **asked)
    assert expected["best_loss"][-1] < expected["best_loss"][0]
    found = simkit.optimize(nested, ["gravity", "closure.layers"], **asked)
    # The order in which norms are summed depends on the names: round-off of a few updates.
    close = {"rtol": 1e-3, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-8, "atol": 1e-12}
    for name in ("gravity", *BRANCH):
        np.testing.assert_allclose(found[f"best_{PLACES[name]}"], expected[f"best_{name}"], **close)
        assert found[f"best_{PLACES[name]}"].attrs["long_name"] == f"the {name}"
    np.testing.assert_allclose(found["loss"], expected["loss"], **close)
    scenario = load(nested, {"steps": 5})
    assert Optimization(scenario, ("gravity", "closure.layers"), "off").checked() == (
        Optimization(scenario, ("gravity", *(PLACES[name] for name in BRANCH)), "off").checked()
    )
    # The result is accepted as parameters of the simulation.
    best = {name.removeprefix("best_"): v[-1] for name, v in found.items() if name.startswith("best_c")}
    again = nested.with_params(best | {"gravity": found["best_gravity"][-1]})
    assert simkit.run(again, steps=5)["off"][-1] == pytest.approx(float(found["best_loss"][-1]), rel=1e-4)


def test_bounds_may_be_those_of_a_branch(x64):
    nested = mass(nested=True, dtype="float64")

    def objective(params, key):
        return sum(jnp.sum(leaf - 2 * index) for index, leaf in enumerate(jax.tree.leaves(params["closure"])))

    bounds = {"closure": (-1.0, 1.0), "closure.layers.1": (-0.5, 1.0), "closure.layers.1.bias": (-0.25, 1.0)}
    simulation = optimization(objective, nested.params, "closure", bounds)
    state = jax.jit(segment(simulation, 60))(simulation.init(nested.params, jax.random.key(0)), nested.params)
    lowest = {"closure.scale": -1.0, "closure.layers.1.weight": -0.5, "closure.layers.1.bias": -0.25}
    for place, best in state.best.items():
        np.testing.assert_allclose(best, lowest.get(place, -1.0), atol=1e-4)
        assert np.all(np.asarray(state.held[place]) == -1)
    with pytest.raises(simkit.UserError, match="unknown parameter 'closre'; did you mean 'closure'"):
        optimization(objective, nested.params, "closure", {"closre": (0, 1)})


def test_interrupted_jobs_resume_bit_for_bit(tmp_path):
    scenario = load(mass(nested=True), {"steps": 40, "every": 1, "closure.scale": 0.5})
    jobs = {
        "run": lambda: Run(scenario),
        "sweep": lambda: Sweep(scenario, {"closure.scale": (0.5, 0.6, 0.7)}, chunk=1),
        "optimize": lambda: Optimization(scenario, ("closure.layers",), "off", "adam", 6),
        "grad": lambda: Gradient(scenario, ("closure.layers", "closure.scale"), "off").checked(),
    }
    for kind, job in jobs.items():
        with pytest.raises(Stopped):
            begin(job(), tmp_path / kind, report=StopAfter(2))
        with pytest.raises(simkit.UserError, match="began with another simulation"):
            simkit.resume(tmp_path / kind, simulation=mass(nested=False))
    resumed = {kind: simkit.resume(tmp_path / kind, simulation=mass(nested=True)) for kind in jobs}
    for kind, job in jobs.items():
        begin(job(), tmp_path / f"whole_{kind}")
        xarray.testing.assert_identical(resumed[kind], simkit.open_run(tmp_path / f"whole_{kind}"))
        assert resumed[kind].to_netcdf(engine="scipy")
    assert json.loads((tmp_path / "optimize" / "manifest.json").read_text())["request"]["wrt"] == [
        PLACES[name] for name in BRANCH
    ]


def test_exported_program_takes_leaves_by_their_paths(tmp_path):
    folder = tmp_path / "out"
    simkit.export.program(mass(nested=True), folder, what="final", batch="symbolic", steps=3, name="mass")
    card = json.loads((folder / "io.json").read_text())
    names = [port["name"] for port in card["inputs"]]
    assert set(names) == {"key", *(f"params.{place}" for place in PLACES.values())}
    assert card["inputs"][names.index("params.closure.layers.0.weight")]["shape"] == ["symbolic", 3, 2]
    program = jax.export.deserialize(bytearray((folder / "model.jaxexport").read_bytes()))
    leaves = paths.leaves(mass(nested=True).params)
    batch = {f"params.{place}": jnp.stack([leaf, leaf]) for place, leaf in leaves.items()}
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), 2))
    outputs = program.call(*((batch | {"key": keys})[name] for name in names))
    found = dict(zip((port["name"] for port in card["outputs"]), outputs, strict=True))["diagnostic.off"]
    _, _, told = trajectory(mass(nested=True), 3, 3)(mass(nested=True).params, jax.random.wrap_key_data(keys[1]))
    assert found[1] == pytest.approx(float(told["off"][-1]), rel=1e-5)


def test_controls_and_recordings_take_paths(x64):
    nested = mass(nested=True, dtype="float64")
    start = nested.init(nested.params, jax.random.key(0))
    scales = jnp.asarray([0.5, 0.9])
    state, _ = controlled(nested, 2)(start, nested.params, {"closure.scale": scales})
    now = start
    for scale in scales:
        now = segment(nested, 2)(now, nested.with_params({"closure.scale": scale}).params)
    np.testing.assert_allclose(state["motion"], now["motion"], rtol=1e-13)
    with pytest.raises(simkit.UserError, match=r"control 'closure.scal' is not a parameter; did you mean 'closure.sca"):
        controlled(nested)(start, nested.params, {"closure.scal": scales})
    true = {"closure.scale": 0.9}
    both = beside_recording(nested, true, lambda s, p: {"place": s["motion"][0]}, every=1, noise=0.1)
    told = trajectory(both, 4, 4)(both.params, jax.random.key(0))[2]
    exact = trajectory(both, 4, 4)(both.with_params({"closure.scale": 0.9}).params, jax.random.key(0))[2]
    assert told["distance"][-1] > 1e-4 and exact["distance"][-1] == 0
    errors = standard_errors(both, both.params, 4, ["closure.scale", "gravity"], ["motion"])
    assert all(np.isfinite(error) and error > 0 for error in errors.values())


def chain():
    """Return the chain of springs, its stiffness in a branch."""
    simple = descent()

    def inner(params):
        return {"rest": params["rest"], "stiffness": params["spring"][0]}

    made = {
        name: (lambda function: lambda state, params: function(state, inner(params)))(getattr(simple, name))
        for name in ("step", "observe", "diagnose", "status")
    }
    equilibrium = simple.equilibrium
    assert equilibrium is not None
    return dataclasses.replace(
        simple,
        **made,
        init=lambda params, key: simple.init(inner(params), key),
        equilibrium=dataclasses.replace(equilibrium, residual=lambda x, params: equilibrium.residual(x, inner(params))),
        params={"rest": simple.params["rest"], "spring": (simple.params["stiffness"],)},
    )


def test_converging_simulations_are_differentiated_and_batched_in_flight_by_branch(x64):
    simulation, simple, key = chain(), descent(), jax.random.key(0)
    objective = Objective(simulation, "length", 5000)
    flat = with_derivative(Objective(simple, "length", 5000), ["stiffness", "rest"])(simple.params, key)[1]
    found = with_derivative(objective, ["spring", "rest"])(simulation.params, key)[1]
    np.testing.assert_allclose(found["rest"], flat["rest"], rtol=1e-12)
    np.testing.assert_allclose(found["spring.0"], flat["stiffness"], rtol=1e-12, atol=1e-14)
    stiffness = jnp.asarray([1.0, 2.0, 3.0])
    states = jax.vmap(simulation.init, (None, 0))(simulation.params, jax.random.split(key, 3))
    params = {"rest": simulation.params["rest"], "spring": (stiffness,)}
    together = in_flight(simulation, lanes=2, max_steps=5000, over=["spring"])(states, params)
    again = in_flight(simple, lanes=2, max_steps=5000, over=["stiffness"])(
        states, {"rest": params["rest"], "stiffness": stiffness}
    )
    assert (together.status == Status.CONVERGED).all() and (together.iterations == again.iterations).all()
    np.testing.assert_array_equal(together.state.position, again.state.position)


def test_parameters_without_effect_are_named_by_path():
    idle = mass(nested=True)
    idle = dataclasses.replace(idle, params=idle.params | {"b": {"z": 1.0, "a": [np.ones(2), 2.0]}})
    # In the leaf order of JAX.
    assert idle_parameters(idle) == ["b.a.0", "b.a.1", "b.z"]


FILE = """\
name = "nested_mass"
title = "Mass"
summary = "A mass with a closure."
simulation = "toy.mass"
[config]
nested = true
[params]
gravity = 1.5
[params.closure]
scale = 0.25
[params.closure.layers.1.bias]
default = 0.125
bounds = [-1.0, 1.0]
[params.closure.layers.0]
bias = [0.5, 0.25, 0.0]
[run]
steps = 4
every = 2
[objectives.off]
doc = "off"
[render]
view = "chart"
quantity = "off"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.FACTORIES, "toy.mass", "tests.jobs.test_nested_parameters:mass")
    path = tmp_path / "mass.toml"
    path.write_text(FILE)
    return path


def test_files_name_branches_as_tables(file, tmp_path, capsys):
    values = {"gravity": 1.5, "closure.scale": 0.25, "closure.layers.1.bias": 0.5}
    values["closure.layers.0.bias"] = [0.5, 0.25, 0.0]
    expected = simkit.run(mass(nested=True), steps=4, every=2, **values)
    found = simkit.run(file, **{"closure.layers.1.bias": 0.5}, output=tmp_path / "run")
    np.testing.assert_array_equal(found["motion"], expected["motion"])
    assert load(file).parameters["closure.layers.1.bias"].bounds == (-1.0, 1.0)
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "run"), found)
    shell = ["run", str(file), "--set", "closure.layers.1.bias=0.5", "--no-render", "-o", str(tmp_path / "shell")]
    assert main([*shell, "--set", "closure.layers.0.bias=[0.5, 0.25, 0.0]"]) == 0
    np.testing.assert_array_equal(simkit.open_run(tmp_path / "shell")["motion"], expected["motion"])
    capsys.readouterr()
    assert main(["show", str(file)]) == 0
    assert "closure.layers.0.weight" in capsys.readouterr().out
    assert main(["grad", str(file), "--wrt", "closure.layers,gravity", "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["wrt"]
    assert list(told) == [*(PLACES[name] for name in BRANCH), "gravity"]
    assert {entry["verdict"] for entry in told.values()} == {"agrees"}
    over = ["sweep", str(file), "--over", "params.closure.scale=0.1,0.2", "--no-frames", "-o", str(tmp_path / "sweep")]
    assert main([*over, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["axes"]["closure.scale"] == [0.1, 0.2]
    best = ["optimize", str(file), "--wrt", "closure.layers", "--iterations", "1", "-o", str(tmp_path / "best")]
    assert main([*best, "--json", "--no-render"]) == 0
    assert set(json.loads(capsys.readouterr().out)["best"]) == {PLACES[name] for name in BRANCH}


def test_the_schema_of_files_nests(file):
    from simkit.scenario.contents import contents_of

    scenario = load(file)
    params = schema_of(scenario, contents_of(scenario))["properties"]["params"]["properties"]
    assert params["gravity"]["default"] == 2.0
    assert params["closure"]["properties"]["layers"]["properties"]["1"]["properties"]["bias"]["default"] == 0.05
    assert params["closure"]["additionalProperties"] is False


def test_large_arrays_are_shown_as_their_number_of_values():
    assert show([[1.0, 2.0]] * 32) == "[" + ", ".join(["[1, 2]"] * 32) + "]"
    assert show(((1.0,) * 65,)) == "[65 values]"
    many = {"net": {"weight": np.ones((20, 10)), "bias": 2.0}}
    simulation = dataclasses.replace(
        mass(nested=True),
        params=many,
        init=lambda params, key: {"motion": params["net"]["bias"] / 0 * params["net"]["weight"].sum(0)[:2]},
        step=lambda state, params: state,
        diagnose=lambda state, params: {"off": state["motion"][0]},
        quantities={},
    )
    with pytest.raises(simkit.RunFailedError, match=r"net.weight = \[200 values\], net.bias = 2.0"):
        simkit.run(simulation, steps=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scale = 0.25", "scal = 0.25", "params.closure.scal is not a parameter of toy.mass; did you mean"),
        ("scale = 0.25", "scale = 'a'", "params.closure.scale = 'a' is a string; write a number"),
        ("default = 0.125", "defalt = 0.125", "params.closure.layers.1.bias.defalt is not a known key; did you mean"),
        ("default = 0.125", "default = 2.0", "params.closure.layers.1.bias.default = 2 is above its upper bound 1"),
        ("layers.0]", "'two words']", "'two words' is not a name"),
    ],
)
def test_mistakes_in_files_name_the_path(file, old, new, message):
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    with pytest.raises(simkit.UserError, match=message) as error:
        simkit.run(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["grad", "--wrt", "params.gravity"], "'params.gravity' is not a parameter of nested_mass; write gravity"),
        (["grad", "--wrt", "closure,closure.scale"], "parameter 'closure.scale' is named twice"),
        (["sweep", "--over", "closure=1,2"], "it is a branch; name one of closure.scale,"),
        (["sweep", "--over", "closure.layers=1,2"], "it is a branch; name one of closure.layers.0.weight,"),
        (["sweep", "--over", "closure.layers.0.bias=1,2"], "is an array of shape (3,); only single numbers are swept"),
        (["run", "--set", "closure=1"], "--set closure: 'closure' is a branch of parameters"),
        (["run", "--set", "params.closure.scal=1"], "did you mean 'closure.scale'"),
        (["run", "--set", "closure.scale=7"], "--set closure.scale = 7 is above its upper bound 3"),
        (["run", "--set", "closure.layers.0.bias=[1,2]"], "does not have the default's shape"),
    ],
)
def test_mistakes_in_the_shell_name_the_path(file, words, message, capsys):
    assert main([words[0], str(file), *words[1:]]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda s: simkit.value_and_grad(s, [], objective="off", steps=2),
            "wrt names no parameter; name each parameter once",
        ),
        (lambda s: simkit.optimize(s, [], objective="off", steps=2), "wrt names no parameter"),
        (lambda s: simkit.value_and_grad(s, "params.closure", objective="off", steps=2), "; write closure$"),
        (lambda s: simkit.optimize(s, "closure.layer", objective="off", steps=2), "did you mean 'closure.layers'"),
        (lambda s: simkit.sweep(s, {"closure": [1.0]}, steps=2), "it is a branch; name one of closure.scale"),
        (lambda s: simkit.run(s, steps=2, closure=3.0), "'closure' is a branch of parameters"),
        (lambda s: simkit.run(s, steps=2, closure={"scale": 1.0}), "lack 'closure.layers.0.weight'"),
        (lambda s: simkit.run(s, steps=2, **{"closure.scael": 1.0}), "did you mean 'closure.scale'"),
        (lambda s: simkit.run(s, steps=2, **{"closure.layers.0.bias": [9.0, 0, 0]}), r"bias\[0\] = 9 is above its upp"),
        (lambda s: simkit.ensemble(s, over=["closre"]), "unknown parameter 'closre'; did you mean 'closure'"),
    ],
)
def test_mistakes_in_python_name_the_path(act, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        act(mass(nested=True))
    assert "\n" not in str(error.value)
