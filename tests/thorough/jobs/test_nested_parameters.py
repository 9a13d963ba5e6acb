"""Nested parameters, in all uses of flat ones: the same simulation in both forms gives the same results."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.core import paths
from simkit.core.gradient import with_derivative
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.rollout import segment, trajectory
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Optimization
from simkit.jobs.runs import Run
from simkit.jobs.stored_derivatives import Gradient
from simkit.jobs.sweeps import Sweep
from simkit.scenario import registry
from simkit.scenario.made_in_python import load
from tests.differences import central_difference
from tests.jobs.test_nested_parameters import FILE, in_tree, mass
from tests.stopping import StopAfter, Stopped

DTYPES = ["float32", "float64"]


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
