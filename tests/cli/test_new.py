"""`simkit new` writes a valid scenario file, which stays valid with every commented line enabled."""

import re

import pytest

import simkit
from simkit.cli.main import main
from simkit.core.precision import precision
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario, read_scenario
from simkit.scenario.contents import bare_scenario
from simkit.scenario.registry import SIMULATIONS
from tests.tables import every


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """Return a function that runs the verb in an empty folder and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main(["new", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_a_copy_equals_its_original(new, tmp_path):
    check_copy("bouncing_ball", new, tmp_path)


def check_copy(source, new, folder):
    code, printed, _ = new("mine", "--from", source)
    assert code == 0 and printed == "wrote mine.toml; run it with: simkit run mine.toml\n"
    mine, original = read_scenario(folder / "mine.toml"), find_scenario(source)
    assert mine.name == "mine"
    for field in ("config", "parameter_settings", "run", "objectives", "render", "validations", "title"):
        assert getattr(mine, field) == getattr(original, field)


def test_every_commented_line_may_be_enabled(new, tmp_path):
    check_commented_lines("rigid.bouncing_ball", new, tmp_path)


def check_commented_lines(source, new, folder):
    assert new("mine", "--from", source, "--overwrite")[0] == 0
    path = folder / "mine.toml"
    build_in_its_precision(path)
    lines = re.sub(r"^# (\w+ = )", r"\1", path.read_text(), flags=re.MULTILINE)
    assert lines != path.read_text()
    path.write_text(lines)
    known = bare_scenario(source) if source in SIMULATIONS.names() else find_scenario(source)
    everything, declared = read_scenario(path).parameters, known.parameters
    assert {name: p.default for name, p in everything.items()} == {name: p.default for name, p in declared.items()}
    assert set(everything) == set(read_scenario(path).parameter_settings)
    build_in_its_precision(path)


def build_in_its_precision(path):
    with precision(read_scenario(path).run.precision):
        build(path)


def test_a_file_is_replaced_only_when_asked(new, tmp_path):
    assert new("mine", "--from", "projectile", "-o", "folder/other.toml")[0] == 0
    (tmp_path / "folder" / "other.toml").write_text("mine")
    code, _, error = new("mine", "--from", "projectile", "-o", "folder/other.toml")
    assert code == 2 and "folder/other.toml exists; choose another file with --output" in error
    assert (tmp_path / "folder" / "other.toml").read_text() == "mine"
    assert new("mine", "--from", "projectile", "-o", "folder/other.toml", "--overwrite")[0] == 0


@every(
    "words, message",
    [(["Mine"], "is not a name"), (["mine", "--from", "flow.domian"], "did you mean 'flow.domain'?"), ([], "NAME")],
)
def test_mistakes_are_one_line(words, message, new, tmp_path):
    code, _, error = new(*words)
    assert code == 2 and error.count("\n") == 1 and message in error
    assert not list(tmp_path.iterdir())


def test_defaults_are_written_with_all_their_digits(new, tmp_path, monkeypatch):
    """A number that float32 rounds: 8/3 of the system of Lorenz."""
    monkeypatch.setitem(SIMULATIONS.own, "toys.third", "tests.cli.test_new:third")
    assert new("mine", "--from", "toys.third")[0] == 0
    assert f"beta = {8 / 3}" in (tmp_path / "mine.toml").read_text()


def third():
    """A number that decays."""
    return simkit.Simulation(
        init=lambda params, key: params["beta"],
        step=lambda state, params: state * params["beta"],
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"time": state},
        params={"beta": 8 / 3},
    )
