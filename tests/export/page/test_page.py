"""Pages that compute: content of the file, escaped texts, sliders, and refusals."""

import base64
import contextlib
import gzip
import hashlib
import html.parser
import io
import json
import math

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import simkit.export
from simkit.cli.main import main
from simkit.core.parameter import POSITIVE
from simkit.export.onnx.graph import computed_in
from simkit.export.onnx.model import share_constants
from simkit.export.onnx.runtime import convert
from simkit.export.page import runtime
from simkit.export.page.drawing import plain_text, scale_data
from simkit.export.page.exporting import sliders_of
from simkit.export.programs.functions import Port
from simkit.render.color import color_scale
from tests.toys import PENDULUMS

CHART = PENDULUMS.replace('view = "field"\nquantity = "position"', 'view = "chart"\nquantity = "energy"')
BREAKOUT = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)> \" ' & {script} {blocks}"


class Elements(html.parser.HTMLParser):
    """Tags of a page with their attributes, and the text of its scripts by identifier."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.titles, self.inside = [], {}, [], ("", {})
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag, dict(attributes)
        self.tags.append(self.inside)

    def handle_endtag(self, tag):
        self.inside = "", {}

    def handle_data(self, data):
        tag, attributes = self.inside
        if tag == "script":
            self.scripts[attributes.get("id")] = data
        if tag in ("title", "h1"):
            self.titles.append(data)


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """A folder with what stands for onnxruntime-web, which pages then carry."""
    folder = tmp_path_factory.mktemp("runtime")
    digests = {}
    for name in runtime.SHA256:
        (folder / name).write_bytes(f"// {name}".encode())
        digests[name] = hashlib.sha256(f"// {name}".encode()).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "SHA256", digests)
        patch.delenv(runtime.VARIABLE, raising=False)
        yield folder


@pytest.fixture(scope="module")
def page(factories, carried, tmp_path_factory):
    """The file of a page, beside whose folder its scenario is."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code, file = exported(tmp_path_factory.mktemp("page"), carried)
    assert code == 0 and "show" in printed.getvalue()
    return file


def exported(tmp_path, carried, text=CHART, *words):
    """Return the report of the command, and the page."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "toy.toml").write_text(text)
    file = tmp_path / "out" / "toy.html"
    usual = [word for pair in (("--runtime", carried), ("-o", file)) if pair[0] not in words for word in pair]
    return main([str(word) for word in ("export", tmp_path / "toy.toml", "--to", "page", *usual, *words)]), file


def unpacked(block):
    return gzip.decompress(base64.b64decode(block))


def test_page_is_self_contained(page, carried):
    import onnx

    text = page.read_text()
    assert "http://" not in text and "https://" not in text and "@import" not in text and "url(" not in text
    page = Elements(text)
    sources = [(tag, name) for tag, given in page.tags for name in given if name in ("src", "srcset", "data", "action")]
    assert sources == []
    assert [given["href"] for _, given in page.tags if "href" in given] == ["data:,"]
    (policy,) = (given["content"] for _, given in page.tags if given.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "connect-src" not in policy
    digest = base64.b64encode(hashlib.sha256(page.scripts[None].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}' 'wasm-unsafe-eval' blob:;" in policy and "unsafe-inline" not in policy
    assert unpacked(page.scripts["runtime-script"]) == (carried / runtime.SCRIPT).read_bytes()
    assert unpacked(page.scripts["runtime-wasm"]) == (carried / runtime.MACHINE).read_bytes()
    models = {
        form: onnx.load_model_from_string(unpacked(page.scripts[f"model-{form}"])).graph
        for form in ("start", "advance", "show")
    }
    assert [port.name for port in models["start"].input][-1] == "key"
    state = {port.name for port in models["start"].output}
    assert state == {port.name.replace("next.", "state.") for port in models["advance"].output}
    assert state < {port.name for port in models["show"].input}


def test_programs_share_large_constants_and_compute_the_same_with_them(tmp_path):
    import onnx
    import onnxruntime

    table = np.arange(512, dtype=np.float32)
    functions = [lambda x: x * table, lambda x: x + table, lambda x: x - 2 * table]
    whole = [convert(function, np.ones(512, np.float32)).model for function in functions]
    models = [onnx.load_model_from_string(model.SerializeToString()) for model in whole]
    (tmp_path / "constants").write_bytes(content := share_constants(models, "constants"))
    # Twice the table is another constant where it is folded, and computed where it is not.
    assert content.startswith(table.tobytes()) and len(content) in (table.nbytes, 2 * table.nbytes)
    for number, (model, shared) in enumerate(zip(whole, models, strict=True)):
        (tmp_path / f"{number}.onnx").write_bytes(shared.SerializeToString())
        results = [
            onnxruntime.InferenceSession(source).run(None, {model.graph.input[0].name: np.ones(512, np.float32)})[0]
            for source in (model.SerializeToString(), tmp_path / f"{number}.onnx")
        ]
        np.testing.assert_array_equal(*results)
        assert len(shared.SerializeToString()) < table.nbytes


def test_page_describes_parameters_diagnostics_and_pace(page):
    data = json.loads(Elements(page.read_text()).scripts["description"])
    first, second = data["sliders"]
    assert (first["label"], first["unit"], first["default"]) == ("frequency", "1/s", 1.3)
    assert (first["low"], first["high"], first["first"], first["last"]) == (0.1, 10.0, 0.1, 10.0)
    assert second["logarithmic"] and second["live"]
    assert data["drawing"]["quantity"] == "energy" and data["main"] == "energy"
    assert data["clock"]["name"] == "time" and "energy" in [one["name"] for one in data["diagnostics"]]
    assert data["steps_per_second"] == 2 * simkit.load(page.parents[1] / "toy.toml").render.frames_per_second
    assert data["keyWords"] == 2 and data["statuses"].keys() >= {"1", "3"} and "0" not in data["statuses"]


def test_texts_of_a_scenario_are_escaped(page, tmp_path, carried):
    quoted = json.dumps(BREAKOUT)
    text = CHART.replace('"Pendulums"', quoted).replace('"of small swings"', quoted)
    text = text.replace('"Pendulums that swing from random angles."', quoted)
    _, file = exported(tmp_path, carried, text)
    plain, quoting = Elements(page.read_text()), Elements(file.read_text())
    assert [tag for tag, _ in quoting.tags] == [tag for tag, _ in plain.tags]
    assert quoting.scripts[None] == plain.scripts[None]
    data = json.loads(quoting.scripts["description"])
    assert data["sliders"][0]["doc"] == BREAKOUT
    assert "".join(quoting.titles) == 2 * BREAKOUT


def test_same_scenario_gives_the_same_bytes(page, tmp_path, carried):
    assert exported(tmp_path, carried)[1].read_bytes() == page.read_bytes()


def test_report_has_the_differences_of_the_programs_from_jax(tmp_path, carried):
    (tmp_path / "toy.toml").write_text(CHART)
    report = simkit.export.web_page(tmp_path / "toy.toml", tmp_path / "toy.html", runtime=carried, frequency=2.0)
    assert report.passed and report.nodes.keys() == report.differences.keys() == {"start", "advance", "show"}
    assert max(one.error for found in report.differences.values() for one in found) < 1e-12
    assert report.size == (tmp_path / "toy.html").stat().st_size


def test_page_that_differentiates_holds_the_gradient_of_the_objective(tmp_path, carried):
    import onnx

    code, file = exported(tmp_path, carried, CHART, "--objective", "energy", "--wrt", "frequency")
    assert code == 0
    scripts = Elements(file.read_text()).scripts
    graph = onnx.load_model_from_string(unpacked(scripts["model-gradient"])).graph
    assert {port.name for port in graph.output} == {"objective", "gradient.frequency"}
    about = json.loads(scripts["description"])["derivative"]
    assert (about["label"], about["goal"], about["steps"], about["labels"]) == ("energy", "minimize", 20, ["frequency"])


def test_pages_with_a_shared_runtime_load_it_from_its_folder(page, tmp_path, carried):
    code, file = exported(tmp_path, carried, CHART, "--shared", tmp_path / "run time")
    assert code == 0 and file.stat().st_size < page.stat().st_size
    found, alone = Elements(file.read_text()), Elements(page.read_text())
    sources = [given["src"] for tag, given in found.tags if tag == "script" and "src" in given]
    assert sources == ["../run%20time/runtime.js", "../run%20time/page.js"]
    assert not found.scripts.keys() & {"runtime-script", "runtime-wasm"}
    assert (tmp_path / "run time" / "page.js").read_text() == alone.scripts[None]
    runtime_script = (tmp_path / "run time" / "runtime.js").read_text()
    assert alone.scripts["runtime-wasm"] in runtime_script and alone.scripts["runtime-script"] in runtime_script
    (policy,) = (given["content"] for _, given in found.tags if given.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'self' file: ") and "connect-src" not in policy


def test_lesson_is_shown_and_its_scripts_do_not_run(tmp_path, carried):
    (tmp_path / "lesson.html").write_text("<p>Why? {script}</p><script>alert(1)</script>")
    code, file = exported(tmp_path, carried, CHART, "--lesson", tmp_path / "lesson.html")
    text = file.read_text()
    assert code == 0 and "<p>Why? {script}</p>" in text
    digest = base64.b64encode(hashlib.sha256(b"alert(1)").digest()).decode()
    assert digest not in text and "unsafe-inline" not in text


def _damage(folder):
    (folder / runtime.MACHINE).write_bytes(b"changed")


def _remove(folder):
    (folder / runtime.MACHINE).unlink()


MISTAKES = {
    "suffix": (["-o", "page.txt"], CHART, None, "page.txt cannot hold a page; name it page.html"),
    "form": (["--what", "step"], CHART, None, "--what is for programs, not for a page"),
    "batch": (["--batch", "3"], CHART, None, "--batch"),
    "setting": (["--set", "frequency=99"], CHART, None, "frequency"),
    "folder": (["--runtime", "nowhere"], CHART, None, "nowhere does not hold the ort.wasm.bundle.min.mjs of"),
    "file": ([], CHART, _damage, f"the {runtime.MACHINE} of onnxruntime-web 1.30.0"),
    "missing file": ([], CHART, _remove, f"the {runtime.MACHINE} of onnxruntime-web 1.30.0"),
    "view": ([], PENDULUMS, None, "needs the coordinate x"),
    "color map": ([], PENDULUMS + 'colormap = "infrno"\n', None, "did you mean 'inferno'"),
    "objective": (["--objective", "enrgy", "--wrt", "frequency"], CHART, None, "did you mean 'energy'"),
    "parameter": (["--wrt", "frequncy"], CHART, None, "did you mean 'frequency'"),
    "no parameter": (["--objective", "energy"], CHART, None, "name the parameters with --wrt"),
    "lesson": (["--lesson", "nowhere.html"], CHART, None, "nowhere.html cannot be read as the HTML of a lesson"),
}


def test_wrong_option_is_refused_in_one_line_and_writes_nothing(tmp_path, carried, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = {file.name: file.read_bytes() for file in carried.iterdir()}
    found = {}
    for mistake, (words, text, harm, phrase) in MISTAKES.items():
        for name, data in whole.items():
            (carried / name).write_bytes(data)
        if harm:
            harm(carried)
        code, file = exported(tmp_path, carried, text, *words)
        lines = capsys.readouterr().err.strip().splitlines()
        if code != 2 or len(lines) != 1 or phrase not in lines[0] or file.exists() or (tmp_path / "page.txt").exists():
            found[mistake] = code, lines
    for name, data in whole.items():
        (carried / name).write_bytes(data)
    assert not found


def test_existing_file_is_not_overwritten(tmp_path, carried, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "toy.html").write_text("mine")
    code, file = exported(tmp_path, carried)
    assert code == 2 and "exists; choose another file with --output" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_option_of_pages_is_refused_elsewhere(tmp_path, carried, capsys):
    (tmp_path / "toy.toml").write_text(CHART)
    words = ["export", str(tmp_path / "toy.toml"), "--to", "onnx", "--runtime", str(carried)]
    assert main(words) == 2 and "--runtime is for pages" in capsys.readouterr().err


@pytest.mark.parametrize(("npm", "phrase"), [(None, "No such file or directory: 'npm'"), ("exit 1", "(not found)")])
def test_unavailable_runtime_is_refused_in_one_line(npm, phrase, tmp_path, carried, monkeypatch, capsys):
    (tmp_path / "bin").mkdir()
    if npm:
        program = tmp_path / "bin" / "npm"
        program.write_text(f"#!/bin/sh\necho 'npm error code E404' >&2\necho 'npm error not found' >&2\n{npm}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("SIMKIT_COMPILATION_CACHE", "off")
    (tmp_path / "toy.toml").write_text(CHART)
    assert main(["export", str(tmp_path / "toy.toml"), "--to", "page", "-o", str(tmp_path / "toy.html")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert phrase in line and "--runtime" in line
    assert not (tmp_path / "toy.html").exists()


def test_environment_variable_names_the_runtime(tmp_path, carried, monkeypatch):
    monkeypatch.setenv(runtime.VARIABLE, str(carried))
    assert runtime.runtime_files()[runtime.SCRIPT] == (carried / runtime.SCRIPT).read_bytes()


RANGES = {
    "bounded": ((0.5, (0.0, 1.0)), (0.0, 1.0, False)),
    "wide": ((1.0, (0.01, 100.0)), (0.01, 100.0, True)),
    "unbounded": ((2.0, (-math.inf, math.inf)), (-2.0, 4.0, False)),
    "unbounded and zero": ((0.0, (-math.inf, math.inf)), (-1.0, 2.0, False)),
    "positive": ((3.0, (POSITIVE[0], math.inf)), (0.3, 30.0, True)),
    "not negative": ((3.0, (0.0, math.inf)), (0.0, 6.0, False)),
}


def test_range_of_a_slider_is_the_bounds_or_around_the_default():
    for kind, ((default, bounds), (first, last, logarithmic)) in RANGES.items():
        port = Port("params.x", (), "float64", bounds=bounds)
        (slider,) = sliders_of([port], [np.float64(default)], {"params.x"})["sliders"]
        assert (slider["first"], slider["last"]) == pytest.approx((first, last)), kind
        assert slider["logarithmic"] is logarithmic and first <= default <= last, kind
        assert [slider["low"], slider["high"]] == [end if math.isfinite(end) else None for end in bounds], kind


def test_small_arrays_have_a_slider_for_each_number_and_large_ones_none():
    ports = [Port("params.push", (2,), "float32"), Port("params.weights", (5, 5), "float32")]
    data = sliders_of(ports, [np.ones(2, np.float32), np.ones((5, 5), np.float32)], set())
    assert [(one["label"], one["index"], one["live"]) for one in data["sliders"]] == [
        ("push[0]", 0, False),
        ("push[1]", 1, False),
    ]
    assert data["without_slider"] == ["weights"] and len(data["inputs"][1]["default"]) == 25


def test_colors_are_those_of_the_pictures():
    scale = color_scale(np.array([0.0, 2.0]), "viridis", None, default="inferno")
    data = scale_data(scale)
    table = np.frombuffer(base64.b64decode(data["table"]), np.uint8).reshape(257, 4)
    values = np.array([0.0, 0.7, 1.999, np.nan])
    places = np.where(np.isfinite(values), np.nan_to_num(values) / 2 * 256, 256).astype(int)
    np.testing.assert_array_equal(table[places], scale.colors(scale.position(values)))


def test_labels_are_without_tex_markup():
    assert plain_text(r"$\tau_{w}$ and 5 $") == "tau_w and 5 $"


def test_where_of_uint32_uses_a_type_of_onnxruntime_web():
    assert computed_in("Where", np.dtype(np.uint32)) == np.int64
