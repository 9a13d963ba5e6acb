"""Catalog of scenarios: search by name and path, with broken files beside the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from simkit.errors import UserError
from simkit.scenario import catalog
from simkit.scenario.catalog import find_scenario, list_scenarios, shipped_folder
from tests.scenario.examples import GOOD
from tests.tables import every


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of shipped scenarios with two domains."""
    for domain, name in (("waves", "ripple"), ("decay", "slow"), ("decay", "fast")):
        write(tmp_path / domain / f"{name}.toml", name, f"{domain}.toy")
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path)
    return tmp_path


def write(path: Path, name: str, simulation: str = "toy.decay") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(GOOD.replace("toy_decay", name).replace("toy.decay", simulation))


def test_a_file_of_the_name_is_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(UserError, match=r"unknown scenario 'mine'; did you mean 'mine.toml'"):
        find_scenario("mine")


def test_scenarios_are_listed_by_domain_and_name(folder):
    scenarios, problems = list_scenarios()
    assert [(scenario.domain, scenario.name) for scenario in scenarios] == [
        ("decay", "fast"),
        ("decay", "slow"),
        ("waves", "ripple"),
    ]
    assert problems == []


def test_broken_files_are_listed_beside_the_others_with_their_messages(folder):
    (folder / "waves" / "broken.toml").write_text("name = ")
    (folder / "waves" / "binary.toml").write_bytes(b"\xff\xfe")
    write(folder / "waves" / "renamed.toml", "other")
    write(folder / "waves" / "fast.toml", "fast")
    (folder / "waves" / "dangling.toml").symlink_to("nowhere")
    scenarios, problems = list_scenarios()
    assert [scenario.name for scenario in scenarios] == ["fast", "slow", "ripple"]
    messages = {problem.path.stem: problem.message for problem in problems}
    assert set(messages) == {"broken", "binary", "renamed", "fast", "dangling"}
    assert "broken.toml: not valid TOML" in messages["broken"]
    assert "binary.toml' has byte 0, which is not UTF-8 text" in messages["binary"]
    assert "renamed.toml: name = 'other' is not the file's name; rename one of them" in messages["renamed"]
    assert "scenario 'fast' exists twice: 'decay/fast.toml' and 'waves/fast.toml'" in messages["fast"]
    assert "does not exist" in messages["dangling"]


def test_a_path_finds_a_file_of_any_name(folder, tmp_path, monkeypatch):
    write(tmp_path / "mine" / "copy.toml", "slow")
    monkeypatch.chdir(tmp_path / "mine")
    (tmp_path / "mine" / "copy").symlink_to("copy.toml")
    for path in ("copy.toml", "./copy", Path("copy"), tmp_path / "mine" / "copy.toml"):
        assert find_scenario(path).name == "slow"


@every(
    "name, phrase",
    [
        ("slwo", "unknown scenario 'slwo'; did you mean 'slow'? `simkit list` shows every name"),
        ("xyz", "unknown scenario 'xyz'; `simkit list` shows every name"),
        ("*", "unknown scenario '*'"),
        ("", "unknown scenario ''"),
        ("a\nb", "unknown scenario 'a\\nb'"),
        ("no/such", "scenario: 'no/such' does not exist; check the path"),
        ("slow.toml", "scenario: 'slow.toml' does not exist"),
        ("../decay/slow", "does not exist"),
    ],
)
def test_an_unknown_scenario_is_refused_in_one_line(folder, name, phrase):
    with pytest.raises(UserError) as caught:
        find_scenario(name)
    assert phrase in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_name_of_two_files_is_refused(folder):
    write(folder / "waves" / "slow.toml", "slow")
    with pytest.raises(UserError, match=r"'slow' exists twice: 'decay/slow.toml' and 'waves/slow.toml'"):
        find_scenario("slow")


def test_scenarios_inside_an_installed_package_come_first(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "__file__", str(tmp_path / "simkit" / "scenario" / "catalog.py"))
    with pytest.raises(UserError, match=r"the shipped scenarios are missing from .*; install simkit again"):
        shipped_folder()
    (tmp_path / "scenarios").mkdir()
    assert shipped_folder() == tmp_path / "scenarios"
    (tmp_path / "simkit" / "_scenarios").mkdir(parents=True)
    assert shipped_folder() == tmp_path / "simkit" / "_scenarios"


def test_every_shipped_file_is_a_scenario():
    assert list_scenarios()[1] == []


def test_listing_needs_neither_jax_nor_numpy():
    code = (
        "import sys; from simkit.scenario.catalog import list_scenarios; list_scenarios()\n"
        "assert not {'jax', 'numpy', 'importlib.metadata', 'difflib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
