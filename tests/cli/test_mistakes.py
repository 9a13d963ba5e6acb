"""Invalid input gives one line and exit code 2, and leaves no folder."""

import argparse
import json
import re
import warnings

import pytest
from jax.errors import JaxRuntimeError

from simkit.cli.arguments import exclude
from simkit.errors import CODES, UserError, argument
from tests.tables import every
from tests.toys import PENDULUMS, toys  # noqa: F401

SMALL = ("--set", "config.axes.x.cells=8", "--set", "config.axes.y.cells=8", "--set", "steps=20", "--set", "every=10")
GOOD = """
name = "mine"
title = "Mine"
summary = "A test."
simulation = "flow.domain"
[config]
viscosity = "1/reynolds"
[config.axes]
x = { cells = 4, length = 1.0, periodic = true }
y = { cells = 4, length = 1.0, periodic = true }
[params.reynolds]
default = 10.0
bounds = [1.0, 100.0]
doc = "Reynolds number"
[run]
steps = 20
every = 10
[render]
view = "field"
quantity = "speed"
"""


@pytest.fixture
def toy(simkit, tmp_path):
    """Write a toy that compiles in a second, and return the command line in its folder."""
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    return simkit


MISTAKES = {
    "unknown verb": (["rnu"], ["unknown verb 'rnu'", "did you mean 'run'"]),
    "unknown scenario": (["run", "chanel_flow"], ["unknown scenario", "chanel_flow", "did you mean 'channel_flow'"]),
    "beginning of a scenario's name": (["run", "couet"], ["did you mean 'couette_poiseuille'? `simkit list` shows"]),
    "word of scenarios' names": (["show", "cylinder"], ["did you mean 'cylinder_in_channel' or ", "simkit list"]),
    "a simulation": (["run", "flow.domain"], ["is a simulation, not a scenario", "channel_flow", "simkit show"]),
    "an argument of another simulation": (
        ["run", "channel_flow", "--set", "drive=flow_rate"],
        ["--set drive is not a key of channel_flow"],
    ),
    "a key inside arguments": (
        ["run", "channel_flow", "--set", "cells=[8, 8]"],
        ["--set cells is not a key of channel_flow; did you mean 'config.axes.x.cells' or 'config.axes.y.cells'?"],
    ),
    "bad config": (["run", "channel_flow", "--set", "config.axes.x.cells=2"], ["axes.x.cells = 2", "4 to"]),
    "unknown flag": (["run", "channel_flow", "--fast"], ["--fast", "--help"]),
    "control character": (["run", "channel_flow", "--fa\x1bst"], ["--fa\\x1bst", "--help"]),
    "unknown format": (["run", "channel_flow", "--format", "avi"], ["avi", "gif"]),
    "bad size": (["run", "channel_flow", "--size", "huge"], ["huge", "1280x720"]),
    "no scenario": (["run"], ["NAME"]),
    "nothing to sweep": (["sweep", "channel_flow"], ["--over", "--seeds"]),
    "sweep a config key": (["sweep", "turbulent_channel", "--over", "cells=4:8:3"], ["cells", "--over config.cells="]),
    "sweep one value": (
        ["sweep", "turbulent_channel", "--over", "config.method=runge_kutta"],
        ["gives 1 value; give 2 to "],
    ),
    "sweep twice": (["sweep", "channel_flow", "--over", "reynolds=1,2", "--over", "reynolds=3,4"], ["twice"]),
    "a name of wrt left out": (["grad", "channel_flow", "--wrt", "reynolds,,forcing"], ["'' is not a parameter"]),
    "resume nothing": (["resume", "nowhere"], ["nowhere", "not a run directory"]),
    "export format": (["export", "channel_flow", "--to", "onyx"], ["onyx", "stablehlo"]),
    "negative seed": (["run", "channel_flow", "--seed", "-1"], ["simkit: --seed = -1", "0 to 4294967295"]),
    "unknown precision": (["run", "channel_flow", "--precision", "float16"], ["simkit: --precision", "float64"]),
    "no such device for a run": (["run", "channel_flow", "--device", "gpu"], ["--device = gpu", "only cpu", "install"]),
    "no such device for a sweep": (
        ["sweep", "bouncing_ball", "--seeds", "2", "--device", "tpu"],
        ["--device = tpu", "pip install 'jax[tpu]'"],
    ),
    "no such device for a forecast": (
        ["sweep", "bouncing_ball", "--seeds", "2", "--device", "gpu", "--dry-run"],
        ["--device = gpu"],
    ),
    "no such device for a derivative": (
        ["grad", "bouncing_ball", "--wrt", "gravity", "--device", "gpu"],
        ["--device = gpu"],
    ),
    "no such device for second derivatives": (
        ["grad", "bouncing_ball", "--wrt", "gravity", "--second", "--device", "gpu"],
        ["--device = gpu"],
    ),
    "no such device for an optimization": (
        ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--device", "gpu"],
        ["--device = gpu"],
    ),
    "unknown device": (["run", "channel_flow", "--device", "cuda"], ["'cuda' is unknown", "auto, cpu, gpu, tpu"]),
    "a device of several processes": (
        ["run", "channel_flow", "--processes", "2", "--process-id", "0", "--coordinator", "x:1", "--device", "gpu"],
        ["--device is for one process", "JAX_PLATFORMS"],
    ),
    "a list without its end": (
        ["sweep", "channel_flow", "--over", "config.cells=[16,24"],
        ["config.cells=[16,24 is not a value"],
    ),
    "twice the same": (["run", "channel_flow", "--seed", "1", "--set", "run.seed=2"], ["seed", "twice"]),
    "here": (["run", "channel_flow", "--output", "."], ["the folder you are in", "--output"]),
    "long name": (["run", "channel_flow", "--output", "x" * 300], ["too long", "--output"]),
    "maximum frames": (["render", "nowhere", "--max-frames", "few"], ["--max-frames", "few"]),
    "swept and set": (
        ["sweep", "channel_flow", *SMALL, "--set", "reynolds=3", "--over", "reynolds=1,2"],
        ["'reynolds' is swept", "has no effect; leave it out"],
    ),
    "config swept and set inside": (
        ["sweep", "viscosity_from_frames", "--set", "cells.0=8", "--over", "config.cells=[8, 8], [8, 16]"],
        ["'config.cells' is swept", "value given for cells.0"],
    ),
    "seed given twice": (["run", "channel_flow", "--seed", "1", "--seed", "2"], ["--seed is given twice"]),
    "output given twice": (["run", "channel_flow", "-o", "a", "--output", "b"], ["--output is given twice"]),
    "shape of no picture": (["run", "channel_flow", "--no-render", "--size", "99x99"], ["--size", "--no-render"]),
    "format of an optimization": (["optimize", "channel_flow", "--wrt", "reynolds", "--format", "gif"], ["--format"]),
    "shape of no picture of starts": (
        ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--starts", "2", "--size", "99x99"],
        ["--size is not for an optimization from several starts"],
    ),
    "frame of an animation": (["render", "nowhere", "--frame", "3"], ["--frame", "--format png"]),
    "frames of a picture": (["render", "nowhere", "--format", "png", "--max-frames", "3"], ["--max-frames"]),
    "another file than its format": (["render", "x", "--format", "png", "-o", "x.gif"], ["x.gif", "name it x.png"]),
    "a file of no format": (["render", "nowhere", "-o", "x"], ["x is not the name of a gif file; name it x.gif"]),
    "no name of a file": (
        ["run", "projectile", "-o", "\ud800"],
        ["'\\ud800' has characters that no file name may have"],
    ),
    "one process": (["launch", "-n", "1", "run", "channel_flow"], ["-n = 1 is not an integer from 2 to 256"]),
    "a sweep in processes": (
        ["launch", "-n", "2", "sweep", "channel_flow"],
        ["argument VERB: invalid choice: 'sweep'"],
    ),
    "processes alone": (
        ["run", "channel_flow", "--processes", "2"],
        ["--process-id is missing; several processes need"],
    ),
    "no address": (
        ["run", "channel_flow", "--processes", "2", "--process-id", "0", "--coordinator", "x"],
        ["coordinator = 'x' is not an address; write host:port"],
    ),
    "process after the last": (
        ["run", "channel_flow", "--processes", "2", "--process-id", "2", "--coordinator", "127.0.0.1:1"],
        ["process_id = 2 is not an integer from 0 to 1; write one"],
    ),
    "set as a whole and inside": (
        ["run", "viscosity_from_frames", "--set", "cells.0=8", "--set", "cells=[16, 8]"],
        ["--set cells names config.cells.0 twice"],
    ),
    "an option without a name": (
        ["optimize", "projectile", "--wrt", "spin", "--method", "lbfgs:=1"],
        ["method = 'lbfgs:=1' has the option '=1'; write lbfgs:KEY=VALUE"],
    ),
    "too many steps": (
        ["run", "projectile", "--set", "steps=999999999999"],
        ["--set steps = 999999999999 is not an integer from 1 to 2147483647"],
    ),
    "digits of another script": (
        ["run", "projectile", "--set", "spin=\u0663.\u0665"],
        ["is not a value; write a number"],
    ),
    "a folder": (["export", ".."], ["it is a folder, and that of a run is for `simkit resume`, `render` and "]),
    "list tag": (["list", "--tag", "nonsense"], ["nonsense", "--tag"]),
}


@every("words, phrases", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(simkit, tmp_path, words, phrases):
    ran = simkit(words[0], "--json", *words[1:]) if words[0] != "rnu" else simkit(*words)
    assert ran.code == 2
    assert ran.line.startswith("simkit: ")
    for phrase in phrases:
        assert phrase in ran.line
    if ran.out:
        suggested = re.search(r"; did you mean '([^']+)'", ran.line)
        assert json.loads(ran.out)["error"]["did_you_mean"] in ([suggested[1]] if suggested else [None])
    assert not list(tmp_path.iterdir())


def test_a_mistake_is_json_for_machines(simkit):
    ran = simkit("run", "chanel_flow", "--json")
    report = json.loads(ran.out)
    assert report["exit_code"] == ran.code == 2
    error = report["error"]
    assert list(error) == ["code", "key", "allowed", "did_you_mean", "message", "remedy"]
    assert error["message"] in ran.err and error["code"] in CODES
    assert error["did_you_mean"] == "channel_flow" and error["remedy"] == {"action": "replace", "value": "channel_flow"}


MODEL = """
name = "mine"
title = "Mine"
summary = "A model of my own."
simulation = "rigid.mjcf"
config.model = '<mujoco><worldbody><body><joint type="hinge"/><geom size="0.1"/></body></worldbody></mujoco>'
[run]
steps = 4
every = 2
[render]
view = "bodies"
quantity = "position"
"""
BROKEN_FILES = {
    "malformed TOML": ('name = "mine', ["mine.toml", "line"]),
    "unknown simulation": (
        GOOD.replace("flow.domain", "flow.domian"),
        ["mine.toml: simulation: unknown simulation 'flow.domian'; did you mean 'flow.domain'"],
    ),
    "malformed model": (MODEL.replace("</body>", ""), ["XML"]),
    "unknown joint": (MODEL.replace("hinge", "elastic"), ["elastic"]),
    "unknown engine": (MODEL.replace("[run]", 'config.engine = "bullet"\n[run]'), ["engine", "bullet", "mjx"]),
    "not text": (b"\xff\xfe\x00", ["mine.toml", "UTF-8"]),
}


@every("content, phrases", BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_a_broken_scenario_file_is_one_line(simkit, tmp_path, content, phrases):
    file = tmp_path / "mine.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = simkit("run", "./mine.toml")
    assert ran.code == 2
    for phrase in phrases:
        assert phrase in ran.line
    assert list(tmp_path.iterdir()) == [file]


def test_an_existing_run_is_replaced_only_when_asked(toy, tmp_path):
    words = ("run", "toy.toml", "--no-render", "--output", "here")
    assert toy(*words).code == 0
    before = (tmp_path / "here/manifest.json").read_bytes()
    refused = toy(*words, "--set", "frequency=5")
    assert refused.code == 2
    assert "--overwrite" in refused.line
    assert (tmp_path / "here/manifest.json").read_bytes() == before
    assert toy(*words, "--set", "frequency=5", "--overwrite").code == 0
    assert (tmp_path / "here/manifest.json").read_bytes() != before


def test_overwrite_never_deletes_a_folder_that_is_no_run(toy, tmp_path):
    precious = tmp_path / "papers" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")
    ran = toy("run", "toy.toml", "--output", "papers", "--overwrite")
    assert ran.code == 2
    assert "not a run directory" in ran.line
    assert precious.read_text() == "years of work"


def test_overwrite_never_deletes_a_folder_with_a_manifest_of_its_own(toy, tmp_path):
    for name, content in {"manifest.json": '{"name": "my web site"}', "index.html": "precious"}.items():
        (tmp_path / "site").mkdir(exist_ok=True)
        (tmp_path / "site" / name).write_text(content)
    ran = toy("run", "toy.toml", "--output", "site", "--overwrite")
    assert ran.code == 2
    assert "not a run directory" in ran.line
    assert (tmp_path / "site/index.html").read_text() == "precious"
    assert "not" in toy("resume", "site").line


def test_an_altered_run_directory_gives_one_line(toy, tmp_path):
    toy("run", "toy.toml", "--no-render", "--output", "here")
    manifest = tmp_path / "here/manifest.json"
    manifest.write_text(manifest.read_text().replace('"frequency": 1.3', '"frequency": 9.3'))
    (tmp_path / "here/manifest_copy.json").unlink()
    for verb in ("render", "resume"):
        ran = toy(verb, "here")
        assert ran.code == 2, verb
        assert "has changed" in ran.line


@every(
    "error",
    [MemoryError(), JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 2280000200192 bytes.")],
    ids=["host", "device"],
)
def test_lack_of_memory_gives_one_line_and_leaves_no_folder(toy, tmp_path, monkeypatch, error):
    def exhausted(*arguments, **options):
        raise error

    monkeypatch.setattr("simkit.jobs.runs.run_all", exhausted)
    ran = toy("run", "toy.toml")
    assert ran.code == 2
    assert ran.line.lower().startswith("simkit: out of memory") and "smaller" in ran.line
    assert not list((tmp_path / "runs").iterdir())


def test_a_defect_of_simkit_shows_its_traceback(toy, monkeypatch):
    def broken(*arguments, **options):
        raise ValueError("a bug")

    monkeypatch.setattr("simkit.jobs.runs.run_all", broken)
    with pytest.raises(ValueError, match="a bug"):
        toy("run", "toy.toml")


def test_a_warning_is_one_line_without_its_source(simkit, monkeypatch):
    def main(arguments):
        warnings.warn(f"first\nsecond; pass {argument('chunk')} of 2", stacklevel=1)
        warnings.warn("overflow in a library", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr("simkit.cli.verbs.scenarios.List.main", main)
    ran = simkit("list")
    assert (ran.code, ran.err) == (0, "simkit: warning: first second; pass --chunk of 2\n")


def test_a_long_word_of_the_command_line_is_shortened(simkit):
    ran = simkit("run", "projectile", "x" * 100_000)
    assert ran.line == f"simkit: unrecognized arguments: {'x' * 30}...xx; see simkit run --help"


def test_an_option_of_zero_is_one_that_was_given():
    with pytest.raises(UserError, match=r"^--frame is for a picture"):
        exclude(argparse.Namespace(frame=0), ["frame"], "is for a picture")
