"""Structure files: read into a run, stored with it, and exported for other tools."""

import json

import pytest

from simkit.scenario.catalog import find_scenario
from tests.tables import every
from tests.toys import begun

SCENARIO = """\
name = "trimer"
title = "Three atoms"
summary = "Three atoms come together."
simulation = "molecular.system"
run = { steps = 40, every = 1 }
render = { view = "particles", quantity = "displacement" }
objectives.energy = { doc = "energy at rest" }

[config]
particles.Ar = {}
start = { structure = { file = "trimer.xyz" } }
interactions = [{ potential = "lennard_jones" }]
relax = { force_tolerance = 1.5e-5 }
observed = ["displacement"]

[params]
epsilon = { default = 1.0, bounds = [0.1, 10.0], doc = "depth of the pair potential" }
sigma = { default = 1.0, bounds = [0.5, 2.0], doc = "where the pair potential vanishes" }
"""
TRIMER = "3\n\nAr 0 0 0\nAr 1.3 0 0\nAr 0 1.3 0\n"
PAIR = "2\n\nAr 0 0 0\nAr 1.3 0 0\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "trimer.toml").write_text(SCENARIO)
    (tmp_path / "trimer.xyz").write_text(TRIMER)
    (tmp_path / "pair.xyz").write_text(PAIR)
    return tmp_path


def test_show_gives_the_length_of_a_text(simkit, files):
    out = simkit("show", "./trimer.toml").out
    assert f"a text of 5 lines, {len(TRIMER)} bytes" in out and "1.3" not in out
    assert json.loads(simkit("show", "./trimer.toml", "--json").out)["config"]["start"]["structure"] == TRIMER


def test_the_shipped_file_is_beside_its_scenario(simkit):
    assert find_scenario("silicon_vacancy").config["start"]["structure"].startswith("215\n")
    assert simkit("show", "silicon_vacancy").code == 0


MISTAKES = {
    "no such file": (["start.structure=@nowhere.xyz"], ["--set start.structure", "'nowhere.xyz' does not exist"]),
    "no file at all": (["start.structure=@"], ["--set start.structure", "'.' is a directory"]),
    "not a structure": (
        ["start.structure=@trimer.toml"],
        ["trimer.toml: [config]: start.structure: line 1:", "number of atoms"],
    ),
    "no species": (
        ["start.structure=@neon.xyz"],
        ["trimer.toml: [config]: start.structure: atom 1 (the first is 0) is Ne", "add [config.particles.Ne]"],
    ),
}


@every("settings, phrases", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_structure_is_one_line_and_leaves_nothing(simkit, files, settings, phrases):
    (files / "neon.xyz").write_text("2\n\nAr 0 1 0\nNe 1 1 0\n")
    before = sorted(files.iterdir())
    ran = simkit("run", "./trimer.toml", *(word for setting in settings for word in ("--set", setting)))
    assert ran.code == 2
    for phrase in phrases:
        assert phrase in ran.line
    assert ran.out == "" and sorted(files.iterdir()) == before


EXPORTS = {
    "nothing": (["nowhere"], "nowhere is not a run directory"),
    "changed": (["nowhere", "--set", "epsilon=2"], "--set cannot change a stored run"),
}


@every("words, phrase", EXPORTS.values(), ids=EXPORTS)
def test_an_export_of_no_run_is_one_line(simkit, tmp_path, words, phrase):
    ran = simkit("export", *words, "--to", "extended_xyz")
    assert ran.code == 2 and phrase in ran.line
    assert not list(tmp_path.iterdir())


@every(
    "kind, phrase",
    [("run", "holds no frames yet"), ("sweep", "is not finished"), ("optimize", "holds an optimization")],
)
def test_an_export_of_a_run_without_frames_is_one_line(simkit, tmp_path, kind, phrase):
    begun(tmp_path / kind, find_scenario("silicon_vacancy"), kind)
    ran = simkit("export", kind, "--to", "extended_xyz")
    assert ran.code == 2 and phrase in ran.line
    assert not list(tmp_path.glob("**/*.xyz"))


def test_a_program_needs_a_scenario(simkit, tmp_path):
    (tmp_path / "run").mkdir()
    ran = simkit("export", "./run")
    assert ran.code == 2 and "is a directory; name a text file" in ran.line
