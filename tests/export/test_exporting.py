"""Programs of a simulation for other runtimes: folder, verification, allowed errors, and refusals."""

import json
import runpy
import shutil
import sys

import jax
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.export.programs.functions import FORMS
from simkit.scenario.build import build
from simkit.storage.files import read_arrays, write_arrays
from tests.toys import PENDULUMS, SPRINGS, toy


@pytest.fixture(scope="module")
def exported(factories, tmp_path_factory):
    """The folder of a step for both runtimes; tests change copies of it."""
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


def run_script(path, *words):
    """Run a script in this process, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [str(path), *map(str, words)])
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


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


def test_stand_alone_program_judges_outputs_as_the_export_does(copy, capsys):
    """Outputs that agree, a small one that is measured by the others, an integer and a number that do not agree."""
    reference = read_arrays(copy / "reference.npz")
    reference["start.output.diagnostic.energy"] *= 1e-9
    reference["later.output.diagnostic.energy"] *= 1 + 1e-4
    reference["later.output.status"] += 1
    write_arrays(copy / "reference.npz", reference)
    report = simkit.export.verify(copy)
    expected = report.runtimes[0].differences
    assert [one.passed for one in expected].count(False) == 3
    capsys.readouterr()
    assert run_script(copy / "run_onnx.py") == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[1] for line in lines] == [one.output for one in expected]
    for (_, _, error, allowed, *remark), one in zip(lines, expected, strict=True):
        assert float(error) == pytest.approx(one.error, rel=0.01)
        assert float(allowed) == one.allowed and (remark == ["MISS"]) == (not one.passed)


def test_stand_alone_program_refuses_inputs_that_do_not_fit(copy, capsys):
    start = read_arrays(copy / "reference.npz")
    inputs = {name[12:]: array for name, array in start.items() if name.startswith("start.input.")}
    given, out = copy / "inputs.npz", ("-o", copy / "out.npz")
    (copy / "words.npz").write_text("words")
    for name, value, words, phrase in (
        ("params.frequency", np.float64(99.0), out, "params.frequency is out of its bounds [0.1, 10.0]"),
        ("params.frequency", np.float32(1.0), out, "params.frequency is float32[]; give float64[]"),
        ("params.frequencey", np.float64(1.0), out, "params.frequencey is not an input; io.json names them"),
        ("state.position", np.zeros(4), out, "state.position is float64[4]; give float64[3]"),
        ("state.position", np.zeros(3), (), "add -o out.npz"),
        ("state.position", np.zeros(3), ("--inputs", copy / "missing.npz", *out), "missing.npz cannot be read"),
        ("state.position", np.zeros(3), ("--inputs", copy / "words.npz", *out), "words.npz cannot be read"),
        ("state.position", np.zeros(3), ("-o", copy / "nowhere" / "out.npz"), "cannot be written"),
        ("state.position", np.zeros(3), ("--calls", "0", *out), "--calls 0"),
    ):
        np.savez(given, **inputs | {name: value})
        capsys.readouterr()
        code = run_script(copy / "run_onnx.py", "--inputs", given, *words)
        printed = capsys.readouterr().err
        assert code == 2 and phrase in printed and printed.count("\n") == 1, (phrase, printed)
        assert not (copy / "out.npz").exists(), phrase


def test_program_that_does_not_match_its_reference_is_named(copy, capsys):
    arrays = read_arrays(copy / "reference.npz")
    arrays["later.output.frame.position"][1, 0] *= 1 + 1e-6
    write_arrays(copy / "reference.npz", arrays)
    capsys.readouterr()
    assert main(["export", str(copy), "--verify"]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2 and all("frame.position differs from JAX by 1e-06 in" in line for line in lines)
    assert "model.onnx" in lines[0] and "onnxruntime" in lines[0] and "1e-08 is allowed" in lines[0]


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
    "no outputs": (lambda folder: changed(folder, lambda card: card.update(outputs=[])), "outputs names no array"),
    "type": (lambda folder: changed(folder, lambda card: card["inputs"][0].update(dtype="object")), "inputs[0].dtype"),
    "size": (
        lambda folder: changed(folder, lambda card: card["outputs"][0].update(shape=[2**30, 2**30])),
        "more than 2 GiB",
    ),
    "shape": (
        lambda folder: changed(folder, lambda card: card["outputs"][0].update(shape=[7])),
        "array start.output.diagnostic.energy is float64(), not float64(7)",
    ),
    "bounds": (lambda folder: changed(folder, _bounded), "is out of its bounds [5, 6]"),
    "cases": (lambda folder: changed(folder, lambda card: card.update(cases=["later"])), "reference.npz"),
    "tolerance": (
        lambda folder: changed(folder, lambda card: card.update(tolerance=2)),
        "tolerance = 2 is above its upper bound 0.1",
    ),
    "steps": (lambda folder: changed(folder, lambda card: card.update(compared_steps="2")), "compared_steps = '2'"),
    "no shorter program": (
        lambda folder: changed(folder, lambda card: card.update(compared_steps=2)),
        "shorter/io.json",
    ),
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


def test_damaged_folder_is_refused_in_one_line(exported, tmp_path, capsys):
    found = {}
    for damage, (harm, phrase) in DAMAGE.items():
        folder = shutil.copytree(exported, tmp_path / damage)
        harm(folder)
        code, line = ran(capsys, "export", folder, "--verify")
        if code != 2 or phrase not in line:
            found[damage] = code, line
    assert not found


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
    "large batch": (["--batch", "99999999999999999"], "is not an integer from 1 to 65536; write one"),
    "number of many digits": (["--batch", "9" * 5000], "is not an integer from 1 to 65536"),
    "objective": (["--objective", "energy"], "for the form 'gradient' only"),
    "no objective": (["--what", "gradient", "--objective", "enrgy"], "did you mean 'energy'"),
    "tolerance": (["--tolerance", "2"], "tolerance = 2 is above its upper bound 0.1"),
    "operators": (["--ops", "missing.toml"], "missing.toml"),
}


def test_wrong_option_is_refused_in_one_line_and_writes_nothing(tmp_path, capsys):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    found = {}
    for mistake, (words, phrase) in MISTAKES.items():
        code, line = ran(capsys, "export", tmp_path / "toy.toml", "-o", tmp_path / "out", *words)
        if code != 2 or phrase not in line or (tmp_path / "out").exists():
            found[mistake] = code, line
    assert not found


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


def test_run_without_a_derivative_is_not_exported(tmp_path):
    with pytest.raises(UserError, match="does not converge"):
        simkit.export.program(toy(SPRINGS, steps=2, every=1), tmp_path / "out", what="gradient")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("batch", [2, "symbolic"])
def test_members_of_a_batch_have_different_seeds(batch, tmp_path):
    report = simkit.export.program(toy(), tmp_path / "out", to="all", batch=batch)
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


def test_python_takes_a_simulation(tmp_path):
    report = simkit.export.program(build(toy(precision="float32")), tmp_path / "out", steps=4, name="swing")
    assert report.passed and json.loads((tmp_path / "out" / "io.json").read_text())["scenario"] == "swing"
    with pytest.raises(UserError, match="to = 'jax' is unknown"):
        simkit.export.program(toy(), tmp_path / "other", to="jax")
