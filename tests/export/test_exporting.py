"""Programs of a simulation for other runtimes: folder, verification, allowed errors, and refusals."""

import json
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.export.programs.comparison import allowed_errors, error_of
from simkit.export.programs.functions import FORMS
from simkit.export.programs.rounding import perturbed
from simkit.scenario import registry
from simkit.scenario.build import build
from simkit.storage.archives import read_arrays, write_arrays
from tests.toys import FACTORIES, PENDULUMS, SPRINGS, toy, toys  # noqa: F401


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a step for both runtimes; tests change copies of it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, target in FACTORIES.items():
            patch.setitem(registry.FACTORIES, name, target)
        folder = tmp_path_factory.mktemp("exported") / "step"
        report = simkit.export.program(toy(), folder, to="all")
        assert report.passed and [one.runtime for one in report.runtimes] == ["onnxruntime", "jax.export"]
        return folder


@pytest.fixture
def copy(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copy")


def ran(capsys, *words):
    """Return the exit code of a command, and its only line of error output."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return code, lines[0]


def changed(folder, change):
    """Change the description of a program."""
    card = json.loads((folder / "io.json").read_text())
    change(card)
    (folder / "io.json").write_text(json.dumps(card))


def test_folder_describes_every_array(exported):
    card = json.loads((exported / "io.json").read_text())
    inputs = {port["name"]: port for port in card["inputs"]}
    assert inputs["params.frequency"] == {
        "name": "params.frequency",
        "shape": [],
        "dtype": "float64",
        "unit": "1/s",
        "doc": "of small swings",
        "kind": "number",
        "bounds": [0.1, 10.0],
    }
    assert inputs["state.position"]["shape"] == [3]
    assert inputs["state.key"] | {"kind": "random key", "dtype": "uint32", "shape": [2]} == inputs["state.key"]
    assert "numpy.array([0, seed]" in card["random_keys"]
    outputs = {port["name"]: port for port in card["outputs"]}
    assert outputs["frame.position"]["axes"] == ["pendulum", "column"] and "axes" not in outputs["next.position"]
    assert {"next.position", "frame.position", "diagnostic.energy", "status"} < set(outputs)
    assert {f"state.{name[5:]}" for name in outputs if name.startswith("next.")} < set(inputs)
    assert {path.name for path in exported.iterdir()} == {
        *("model.onnx", "model.jaxexport", "model.mlir", "io.json", "reference.npz", "report.json", "scenario.toml"),
        *("run_onnx.py", "run_jax.py"),
    }
    report = json.loads((exported / "report.json").read_text())
    assert report["passed"] and report["runtimes"][0]["nodes"] > 0 and report["runtimes"][1]["largest_error"] < 1e-10


@pytest.mark.parametrize("program", ["run_onnx.py", "run_jax.py"])
def test_stand_alone_program_follows_the_run_without_simkit(program, copy, x64):
    blocked = copy / "blocked"
    blocked.mkdir()
    (blocked / "simkit.py").write_text("raise ImportError('simkit is not installed')")
    words = [sys.executable, str(copy / program)]
    environment = {"PYTHONPATH": str(blocked), "PATH": "/usr/bin"}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "next.position" in ran.stdout, ran.stderr
    ran = subprocess.run([*words, "--calls", "6", "-o", str(copy / "out.npz")], env=environment, check=False)
    assert ran.returncode == 0
    scenario = toy()
    simulation = build(scenario)
    whole = simkit.trajectory(simulation, 6, 1)
    _, frames, diagnostics = whole(simulation.params, jax.random.key(scenario.run.seed))
    found = np.load(copy / "out.npz")
    np.testing.assert_allclose(found["frame.position"], frames["position"][1:], rtol=1e-12)
    np.testing.assert_allclose(found["diagnostic.energy"], diagnostics["energy"][1:], rtol=1e-12)


@pytest.mark.parametrize("limit", [None, 0.5, 1e-18])
def test_stand_alone_program_judges_outputs_as_the_export_does(limit, copy):
    """Outputs with a usual limit, those that are not compared, those beside the largest output, and one that is 0."""

    def limits(card):
        names = [port["name"] for port in card["outputs"]]
        for allowed in card["allowed_errors"].values():
            allowed[names.index("diagnostic.energy")] = limit
        card["allowed_errors"]["later"][names.index("next.velocity")] = 0.2

    changed(copy, limits)
    reference = read_arrays(copy / "reference.npz")
    reference["start.output.diagnostic.energy"] *= 1e-4
    reference["later.output.diagnostic.energy"] *= 1 + 1e-14
    write_arrays(copy / "reference.npz", reference)
    report = simkit.export.verify(copy)
    expected = report.runtimes[0].differences
    ran = subprocess.run([sys.executable, copy / "run_onnx.py"], capture_output=True, text=True, check=False)
    lines = [line.split(maxsplit=4) for line in ran.stdout.splitlines()[1:]]
    assert [line[1] for line in lines] == [one.output for one in expected]
    for (_, _, error, allowed, *remark), one in zip(lines, expected, strict=True):
        assert float(error) == pytest.approx(one.error, rel=0.01)
        assert (allowed == "-") == (not one.compared)
        assert allowed == "-" or float(allowed) == pytest.approx(one.allowed, rel=0.01)
        assert ("of the largest output" in " ".join(remark)) == one.beside_others
        assert ("MISS" in " ".join(remark)) == (not one.passed)
    assert ran.returncode == (0 if report.runtimes[0].passed else 1)


def test_stand_alone_program_refuses_inputs_that_do_not_fit(copy):
    start = read_arrays(copy / "reference.npz")
    inputs = {name[12:]: array for name, array in start.items() if name.startswith("start.input.")}
    for name, value, phrase in (
        ("params.frequency", np.float64(99.0), "params.frequency is out of its bounds [0.1, 10.0]"),
        ("params.frequency", np.float32(1.0), "params.frequency is float32[]; give float64[]"),
        ("params.frequencey", np.float64(1.0), "params.frequencey is not an input; did you mean params.frequency?"),
        ("state.position", np.zeros(4), "state.position is float64[4]; give float64[3]"),
    ):
        np.savez(copy / "inputs.npz", **inputs | {name: value})
        words = [sys.executable, copy / "run_onnx.py", "--inputs", copy / "inputs.npz", "-o", copy / "out.npz"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr.strip()) == (2, phrase)
    words = [sys.executable, copy / "run_onnx.py", "--inputs", copy / "inputs.npz"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "add -o out.npz" in ran.stderr
    (copy / "words.npz").write_text("words")
    for more, phrase in (
        (["--inputs", copy / "missing.npz", "-o", copy / "out.npz"], "missing.npz cannot be read"),
        (["--inputs", copy / "words.npz", "-o", copy / "out.npz"], "words.npz cannot be read"),
        (["-o", copy / "nowhere" / "out.npz"], "cannot be written"),
        (["--calls", "0", "-o", copy / "out.npz"], "--calls 0"),
    ):
        words = [sys.executable, copy / "run_onnx.py", *more]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ran.returncode == 2 and phrase in ran.stderr and ran.stderr.count("\n") == 1


def test_program_that_does_not_match_its_reference_is_named(copy, capsys):
    arrays = read_arrays(copy / "reference.npz")
    arrays["later.output.frame.position"][1, 0] *= 1 + 1e-6
    write_arrays(copy / "reference.npz", arrays)
    capsys.readouterr()
    assert main(["export", str(copy), "--verify"]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2 and all("frame.position differs from JAX by 1e-06 in" in line for line in lines)
    assert "model.onnx" in lines[0] and "onnxruntime" in lines[0] and "1e-10 is allowed" in lines[0]


def test_verification_passes_what_was_written(exported, capsys):
    assert main(["export", str(exported), "--verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]


def _bounded(card):
    card["inputs"][-1]["bounds"] = [5.0, 6.0]


DAMAGE = {
    "not JSON": (lambda folder: (folder / "io.json").write_text("{"), "io.json"),
    "no description": (lambda folder: (folder / "io.json").unlink(), "io.json: No such file"),
    "format": (lambda folder: changed(folder, lambda card: card.update(format=7)), "format = 7"),
    "name": (lambda folder: changed(folder, lambda card: card["inputs"][0].update(name="../x")), "inputs[0].name"),
    "name twice": (
        lambda folder: changed(folder, lambda card: card["inputs"].append(card["inputs"][0])),
        "names 'state.position' twice",
    ),
    "type": (lambda folder: changed(folder, lambda card: card["inputs"][0].update(dtype="object")), "inputs[0].dtype"),
    "size": (
        lambda folder: changed(folder, lambda card: card["outputs"][0].update(shape=[2**30, 2**30])),
        "at most 2 GiB",
    ),
    "shape": (
        lambda folder: changed(folder, lambda card: card["outputs"][0].update(shape=[7])),
        "array start.output.diagnostic.energy is float64(), not float64(7)",
    ),
    "bounds": (lambda folder: changed(folder, _bounded), "is out of its bounds [5, 6]"),
    "errors": (lambda folder: changed(folder, lambda card: card.update(allowed_errors={})), "allowed_errors"),
    "reference": (lambda folder: (folder / "reference.npz").write_bytes(b"PK"), "reference.npz"),
    "objects": (
        lambda folder: np.savez(folder / "reference.npz", allow_pickle=True, a=np.array([{}], object)),
        "reference.npz",
    ),
    "link": (
        lambda folder: ((folder / "model.onnx").unlink(), (folder / "model.onnx").symlink_to("/etc/hostname")),
        "a symbolic link",
    ),
    "model": (lambda folder: (folder / "model.onnx").write_bytes(b"nothing"), "model.onnx"),
    "program": (lambda folder: (folder / "model.jaxexport").write_bytes(b"nothing" * 9), "model.jaxexport"),
    "no program": (
        lambda folder: [(folder / name).unlink() for name in ("model.onnx", "model.jaxexport")],
        "neither model.onnx nor model.jaxexport",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_folder_is_refused_in_one_line(damage, copy, capsys):
    harm, phrase = DAMAGE[damage]
    harm(copy)
    code, line = ran(capsys, "export", copy, "--verify")
    assert code == 2 and phrase in line


def test_model_that_reads_another_file_is_refused(copy, capsys):
    import onnx

    model = onnx.load(copy / "model.onnx")
    tensor = model.graph.initializer.add(name="secret", data_type=1, dims=[1], data_location=1)
    tensor.external_data.add(key="location", value="../secret")
    onnx.save(model, copy / "model.onnx")
    code, line = ran(capsys, "export", copy, "--verify")
    assert code == 2 and "its tensor 'secret' lies in another file" in line


def test_model_with_sparse_tensors_is_refused(copy, capsys):
    import onnx

    model = onnx.load(copy / "model.onnx")
    sparse = model.graph.sparse_initializer.add(dims=[2])
    sparse.values.CopyFrom(onnx.helper.make_tensor("secret", 1, [1], [1.0]))
    sparse.indices.CopyFrom(onnx.helper.make_tensor("at", 7, [1], [0]))
    onnx.save(model, copy / "model.onnx")
    code, line = ran(capsys, "export", copy, "--verify")
    assert code == 2 and "it holds sparse tensors" in line


def test_program_that_calls_a_foreign_library_is_refused(copy, capsys):
    from jax import export

    checks = [export.DisabledSafetyCheck.custom_call("xla_python_cpu_callback")]
    calling = jax.ffi.ffi_call("xla_python_cpu_callback", jax.ShapeDtypeStruct((), np.float32))
    made = export.export(jax.jit(calling), disabled_checks=checks)(np.float32(1))
    (copy / "model.onnx").unlink()
    (copy / "model.jaxexport").write_bytes(bytes(made.serialize()))
    code, line = ran(capsys, "export", copy, "--verify")
    assert code == 2 and "it calls 'xla_python_cpu_callback', which is no library of JAX" in line


MISTAKES = {
    "target": (["--to", "onyx"], "onyx"),
    "form": (["--what", "frame"], "frame"),
    "batch": (["--batch", "-3"], "batch = '-3'"),
    "large batch": (["--batch", "99999999999999999"], "neither a size up to 65536 nor 'symbolic'; give one of them"),
    "number of many digits": (["--batch", "9" * 5000], "neither a size up to 65536 nor 'symbolic'"),
    "objective": (["--objective", "energy"], "for the form 'gradient' only"),
    "no objective": (["--what", "gradient", "--objective", "enrgy"], "did you mean 'energy'"),
    "tolerance": (["--tolerance", "2"], "tolerance = 2.0"),
    "operators": (["--ops", "missing.toml"], "missing.toml"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_option_is_refused_in_one_line_and_writes_nothing(mistake, tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    words, phrase = MISTAKES[mistake]
    code, line = ran(capsys, "export", tmp_path / "toy.toml", "-o", tmp_path / "out", *words)
    assert code == 2 and phrase in line
    assert not (tmp_path / "out").exists()


def test_existing_folder_is_not_overwritten(exported, tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    code, line = ran(capsys, "export", tmp_path / "toy.toml", "-o", exported)
    assert code == 2 and "exists; choose another folder with --output" in line


def test_earlier_program_is_replaced_when_asked_and_nothing_else(exported, tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    folder = tmp_path / "program"
    shutil.copytree(exported, folder)
    (folder / "notes.txt").write_text("mine")
    words = ("export", tmp_path / "toy.toml", "-o", folder, "--overwrite")
    code, line = ran(capsys, *words)
    assert code == 2 and "holds files that no export wrote (notes.txt), which --overwrite would delete" in line
    (folder / "notes.txt").unlink()
    (folder / "io.json").write_text("{}")
    assert main(list(map(str, words))) == 0
    capsys.readouterr()
    assert "simkit program" in (folder / "io.json").read_text()
    code, line = ran(capsys, "export", folder, "--verify", "--overwrite")
    assert code == 2 and "--overwrite is for exporting" in line


@pytest.mark.parametrize("form", [form for form in FORMS if form != "step"])
def test_every_form_agrees_in_both_runtimes(form, tmp_path):
    report = simkit.export.program(toy(steps=4), tmp_path / "out", to="all", what=form)
    assert report.passed and len(report.runtimes) == 2
    assert max(one.largest_error for one in report.runtimes) < 1e-12


def test_gradient_is_that_of_the_objective(tmp_path):
    simkit.export.program(toy(steps=4), tmp_path / "out", to="onnx", what="gradient")
    found = read_arrays(tmp_path / "out" / "reference.npz")
    value, derivative = simkit.value_and_grad(toy(steps=4), ["frequency", "time_step"])
    np.testing.assert_allclose(found["start.output.objective"], value, rtol=1e-12)
    for name, expected in derivative.items():
        np.testing.assert_allclose(found[f"start.output.gradient.{name}"], expected, rtol=1e-12)


@pytest.mark.parametrize("to", ["stablehlo", "onnx"])
def test_implicit_gradient_agrees(to, tmp_path):
    assert simkit.export.program(toy(SPRINGS), tmp_path / "out", to=to, what="gradient").passed


@pytest.mark.parametrize(("to", "batch"), [("all", 2), ("all", "symbolic")])
def test_members_of_a_batch_have_different_seeds(to, batch, tmp_path):
    report = simkit.export.program(toy(), tmp_path / "out", to=to, batch=batch)
    assert report.passed
    arrays = read_arrays(tmp_path / "out" / "reference.npz")
    assert arrays["start.input.state.position"].shape == (2 if batch == 2 else 3, 3)
    assert len(np.unique(arrays["start.input.state.position"], axis=0)) == len(arrays["start.input.state.position"])
    assert simkit.export.verify(tmp_path / "out").passed


def test_missed_tolerance_gives_exit_code_1(tmp_path, capsys, monkeypatch):
    from simkit.export.programs import runtimes

    reloaded = runtimes.run_stablehlo

    def inexact(data, where):
        run = reloaded(data, where)
        return lambda arrays: [a * (1 + 1e-6) if a.dtype.kind == "f" else a for a in run(arrays)]

    monkeypatch.setattr(runtimes, "run_stablehlo", inexact)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    code = main(["export", str(tmp_path / "toy.toml"), "-o", str(tmp_path / "out")])
    out, err = capsys.readouterr()
    assert code == 1 and "frame.position differs from JAX by 1e-06 in jax.export" in err and "MISS" in out
    assert not json.loads((tmp_path / "out" / "report.json").read_text())["passed"]


def test_refusal_of_a_runtime_is_reported(tmp_path, capsys, monkeypatch):
    import onnxruntime

    def refuses(*_, **__):
        raise RuntimeError("no kernel of Loop\nwhere it is needed")

    monkeypatch.setattr(onnxruntime, "InferenceSession", refuses)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    out = tmp_path / "out"
    code = main(["export", str(tmp_path / "toy.toml"), "--to", "all", "-o", str(out)])
    printed = capsys.readouterr()
    assert code == 1 and "REFUSED" in printed.out
    reason = "onnxruntime refuses it (no kernel of Loop where it is needed); choose another target"
    assert printed.err.strip().splitlines() == [f"simkit: {out}/model.onnx: {reason}"]
    report = json.loads((out / "report.json").read_text())
    onnx, jax_export = report["runtimes"]
    assert not report["passed"] and not onnx["passed"] and "no kernel of Loop" in onnx["refused"]
    assert jax_export["passed"] and jax_export["refused"] == "" and jax_export["largest_error"] < 1e-10
    assert main(["export", str(out), "--verify"]) == 1


def test_errors_are_relative_to_the_largest_number_of_an_output():
    assert error_of(np.array([1.0, 100.0]), np.array([1.1, 100.0])) == pytest.approx(1e-3)
    assert error_of(np.array([0.0, np.inf]), np.array([1e-3, np.inf])) == pytest.approx(1e-3)
    assert error_of(np.array([0.0, np.inf]), np.array([0.0, 1.0])) == np.inf
    # A number that stands for infinity hides no error of the others.
    assert error_of(np.array([1.0, 1e308]), np.array([1.1, 1e308])) == pytest.approx(0.1)
    assert error_of(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])) == 0.25


def allowed_of(function, *arrays, tolerance=1e-10):
    """Return the outputs of a function, and the largest error of each that is not a miss."""
    perturb = jax.jit(perturbed(function, *arrays))
    expected = [np.asarray(array) for array in function(*arrays)]
    return expected, allowed_errors(
        lambda sample: [np.asarray(array) for array in perturb(np.uint32(sample), *arrays)], expected, tolerance
    )


def test_allowed_error_of_a_cancellation_is_its_rounding(x64):
    def run(x):
        return x, x[0] - x[1], jnp.sign(x[0] - x[1]).astype(jnp.int32), jnp.int32([3])

    _, (number, difference, sign, count) = allowed_of(run, np.array([1 / 3, 1 / 3 + 1e-15]))
    assert number == pytest.approx(1e-10, rel=1e-3)
    assert difference > 1
    assert count == 0.0 and sign in (None, 0.0)


def test_allowed_error_of_a_force_at_rest_is_the_rounding_of_its_terms(x64):
    """On a lattice the arguments are exact and equal terms are moved alike, so only the rounding of terms counts."""

    def run(position):
        apart = position[:, None] - position
        return ((jnp.exp(-jnp.abs(apart)) * jnp.sign(apart)).sum(1)[3],)

    (force,), (allowed,) = allowed_of(run, np.arange(7.0))
    # What moving six terms of up to exp(-1) by one unit in the last place leaves, 100 times.
    assert 5e-17 < allowed * abs(force) / 100 < 6 * 2.2e-16 * np.exp(-1)


def test_integer_decided_by_rounding_is_not_compared(x64):
    """A state that is advanced to where it just touches: how many turns touched depends on rounding, not on inputs."""

    def run(step):
        def turn(carry, _):
            height, turns, touched = carry
            height = height - step
            return (height, turns + 1, touched + (height < 0)), None

        return jax.lax.scan(turn, (10 * step, 0, 0), length=10)[0][1:]

    (_, touched), (turns, decided) = allowed_of(run, np.float64(0.1))
    assert turns == 0.0 and decided is None and touched in (0, 1)


def test_counts_masks_and_bounds_are_exact(x64):
    def run(x):
        inside = jnp.where(x > 0, 1.0, 0.0)
        return inside.sum(), (inside @ inside).astype(jnp.int32), jnp.array([jnp.inf, 1.7976931348623157e308]).cumsum()

    _, (count, number, bounds) = allowed_of(run, np.array([0.3, -0.7, 1.9]))
    assert [count, bounds] == pytest.approx([1e-10, 1e-10], rel=1e-3) and number == 0.0


def test_method_for_whole_arrays_does_not_widen_the_tolerance(x64):
    """A method for other runtimes has the tolerance of JAX's own method, whatever the difference of the two."""
    from simkit.core.whole_arrays import prefers_whole_arrays

    _, (allowed,) = allowed_of(lambda x: (x * (2.0 if prefers_whole_arrays() else 1.0),), np.array([0.3, 0.7]))
    assert allowed < 1e-10 + 100 * 4e-16


def test_perturbed_loop_ends_for_each_member_separately(x64):
    def halved(x):
        return jax.lax.while_loop(lambda s: s[0] > 0.25, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    def branched(x):
        return jax.lax.switch(jnp.int32(x > 1), [jnp.sin, jnp.cos], x)

    x = np.array([0.3, 0.7, 3.1])
    runs = jax.vmap(halved), lambda x: (jax.vmap(branched)(x), branched(x[0]), jnp.linalg.solve(jnp.diag(x), x))
    for run in runs:
        perturb = perturbed(run, x)
        for expected, exact, moved in zip(run(x), perturb(np.uint32(0), x), perturb(np.uint32(1), x), strict=True):
            np.testing.assert_array_equal(exact, expected)
            np.testing.assert_allclose(moved, expected, rtol=1e-14)


def test_perturbation_keeps_equal_numbers_equal(x64):
    """A state that compares its copy of a parameter with the parameter must find them equal."""

    def run(parameter, state, rest):
        def turn(state, _):
            same = state[0] == parameter
            return jnp.stack([parameter, jnp.where(same, state[1] + 0.1, 0.0)]), None

        state, _ = jax.lax.scan(turn, state, length=5)
        return jnp.where(state[0] == parameter, rest, 0.0), state

    _, allowed = allowed_of(run, np.float64(1.3), np.array([1.3, 2.0]), np.array([5.1, 1e308]))
    assert all(1e-10 < each < 1e-10 + 100 * 2e-15 for each in allowed)


def test_python_takes_a_simulation(tmp_path):
    report = simkit.export.program(build(toy(precision="float32")), tmp_path / "out", steps=4, name="swing")
    assert report.passed and json.loads((tmp_path / "out" / "io.json").read_text())["scenario"] == "swing"
    with pytest.raises(UserError, match="'jax' is not a target"):
        simkit.export.program(toy(), tmp_path / "other", to="jax")
