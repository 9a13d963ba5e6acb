"""Text files inlined into a scenario when it is read."""

import dataclasses
import os
from pathlib import Path

import pytest

from simkit.errors import UserError
from simkit.scenario import files, registry
from simkit.scenario.build import build
from simkit.scenario.catalog import parse_scenario, read_scenario
from simkit.scenario.made_in_python import load
from simkit.scenario.overrides import apply_overrides, with_values
from simkit.storage.run_directory import RunDirectory
from tests.scenario.examples import GOOD
from tests.tables import every
from tests.toys import begun

NAMING = GOOD.replace('method = "euler"', 'method = { file = "notes.txt" }')
TEXT = "first line\n\tsecond, with 'quotes', \"more\" and \\ backslash\n"


@pytest.fixture(autouse=True)
def any_config(monkeypatch, toy):
    """Let the toy take any configuration."""
    monkeypatch.setitem(registry.FACTORIES, "toy.decay", "tests.scenario.examples:lenient")


@pytest.fixture
def folder(tmp_path):
    return filled(tmp_path)


def filled(folder):
    (folder / "toy.toml").write_text(NAMING)
    (folder / "notes.txt").write_text(TEXT)
    (folder / "link").symlink_to("/etc")
    return folder


def refusal(function, *arguments):
    with pytest.raises(UserError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 300
    return message


def test_the_config_has_the_text(folder):
    scenario = read_scenario(folder / "toy.toml")
    assert scenario.config["method"] == TEXT
    assert scenario.config == read_scenario(folder / "toy.toml").config


def test_files_in_tables_and_lists_are_inlined(folder):
    text = NAMING.replace('{ file = "notes.txt" }', '{ a = [1, { b = { file = "notes.txt" } }] }')
    assert parse_scenario(text, folder / "toy.toml").config["method"] == {"a": (1, {"b": TEXT})}


def test_a_table_that_says_more_about_its_file_gets_the_text_beside_it(folder):
    text = NAMING.replace('{ file = "notes.txt" }', '{ file = "notes.txt", line = 3, text = "other" }')
    scenario = parse_scenario(text, folder / "toy.toml")
    assert scenario.config["method"] == {"file": "notes.txt", "line": 3, "text": TEXT}
    named = {"file": str(folder / "notes.txt"), "line": 3}
    changed = load(parse_scenario(GOOD, "toy.toml"), {"config.more": named})
    assert changed.config["more"] == named | {"text": TEXT}
    (folder / "notes.txt").unlink()
    assert load(changed, {"config.more": changed.config["more"]}) == changed


def test_a_file_that_values_of_a_stored_run_name_is_not_read(folder):
    scenario = parse_scenario(GOOD, folder / "toy.toml")
    stored = {**scenario.config, "method": {"file": str(folder / "notes.txt"), "line": 3}}
    scenario = dataclasses.replace(scenario, config=stored)
    assert "config.method names a file that was not read with it" in refusal(build, scenario)


def test_the_scenario_no_longer_needs_its_file(folder):
    scenario = read_scenario(folder / "toy.toml")
    assert scenario.text.startswith(NAMING.rstrip())
    (folder / "notes.txt").unlink()
    assert parse_scenario(scenario.text, folder / "toy.toml") == scenario
    (folder / "elsewhere.toml").write_text(scenario.text)
    assert read_scenario(folder / "elsewhere.toml").config["method"] == TEXT
    assert "does not exist" in refusal(read_scenario, folder / "toy.toml")


@every(
    "text",
    [
        *("", "\n", "\n\n", "no end of line", "'", "''", "'''", "ends in '", '"""\n', "\\", "\\u0041\\", '"\\"\n'),
        *('\'\'\'\\"""""\n\'', "é \u2028 \U0001f600\n", "[files]\nname = 1\n", "# comment\n", "a\ttab\n", " \n "),
    ],
)
def test_any_text_is_preserved_exactly(folder, text):
    (folder / "notes.txt").write_bytes(text.encode())
    scenario = read_scenario(folder / "toy.toml")
    assert scenario.config["method"] == text
    (folder / "notes.txt").unlink()
    assert parse_scenario(scenario.text, folder / "toy.toml") == scenario


def test_line_ends_are_normalized(folder):
    (folder / "notes.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_scenario(folder / "toy.toml").config["method"] == "one\ntwo\nthree\n"


def test_a_validation_may_run_with_a_file(folder):
    text = NAMING.replace("set = {rate = 0.5, steps = 200}", 'set = {method = {file = "other.txt"}}')
    (folder / "other.txt").write_text("other")
    scenario = parse_scenario(text, folder / "toy.toml")
    assert scenario.validations[0].overrides == {"method": "other"}
    (folder / "other.txt").unlink()
    assert parse_scenario(scenario.text, folder / "toy.toml") == scenario


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


UNREADABLE = {
    "missing": (lambda path: path.unlink(), "'notes.txt' does not exist; check the path"),
    "a directory": (lambda path: (path.unlink(), path.mkdir()), "'notes.txt' is a directory; name a text file"),
    "a pipe": (make_pipe, "'notes.txt' is not a regular file"),
    "not UTF-8": (lambda path: path.write_bytes(b"abc\xff"), "'notes.txt' has byte 3, which is not UTF-8 text"),
    "binary": (lambda path: path.write_bytes(b"abc\x00"), "'notes.txt' holds the control character '\\x00'"),
    "too large": (lambda path: path.write_bytes(b"x" * (files.MAX_FILE_BYTES + 1)), "'notes.txt' is over 8 MiB"),
}


@every("spoil, phrase", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_inlined_is_refused_in_one_line(tmp_path, monkeypatch, spoil, phrase):
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    spoil(filled(folder) / "notes.txt")
    monkeypatch.chdir(folder)
    message = refusal(read_scenario, Path("toy.toml"))
    assert message.startswith("toy.toml: config.method.file: ") and phrase in message
    plain = parse_scenario(GOOD, "toy.toml")
    message = refusal(apply_overrides, plain, ["method=@notes.txt"])
    assert message.startswith("--set method: ") and phrase in message


MISTAKES = {
    "not a name": ("{ file = 3 }", "config.method.file = 3 is no text; write it in quotes"),
    "no name": ('{ file = "" }', "is a directory; name a text file"),
    "a folder up": ('{ file = "../notes.txt" }', "is outside the folder of the scenario; put the file beside it"),
    "a run elsewhere": (
        '{ run = "../run" }',
        "is outside the folder of the scenario; put the run beside it, or leave it out there and give any run with",
    ),
    "anywhere": ('{ file = "/etc/hostname" }', "is outside the folder of the scenario"),
    "hidden": ('{ file = ".ssh/id_rsa" }', "is hidden or in a hidden folder, where keys and passwords are kept"),
    "through a link": ('{ file = "link/hostname" }', "is outside the folder of the scenario"),
    "a date in a list of files": ('[{ file = "notes.txt" }, 2020-01-01]', "config.method[1] = 2020-01-01 is a date"),
}


@every("value, phrase", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_name_of_a_file_is_refused_in_one_line(folder, value, phrase):
    text = NAMING.replace('{ file = "notes.txt" }', value)
    assert phrase in refusal(parse_scenario, text, folder / "toy.toml")


@every(
    "table, phrase",
    [
        ('"other.txt" = "text"', "config.method.file = 'notes.txt' is not in [files]; add its text there"),
        ('"notes.txt" = "text"\n"other.txt" = "text"', "files.'other.txt' is not named in [config]"),
        ('"notes.txt" = 3', "files.notes.txt = 3 is no text; write it in quotes"),
    ],
)
def test_stored_files_are_those_that_are_named(folder, table, phrase):
    message = refusal(parse_scenario, f"{NAMING}\n[files]\n{table}\n", folder / "toy.toml")
    assert message.startswith("toy.toml: ") and phrase in message


def test_the_command_line_and_python_take_any_file(folder):
    scenario = parse_scenario(GOOD, "toy.toml")
    assert apply_overrides(scenario, [f"method=@{folder}/notes.txt"]).config["method"] == TEXT
    assert apply_overrides(scenario, [f"config.method = @{folder}/notes.txt"]).config["method"] == TEXT
    assert with_values(scenario, {"method": folder / "notes.txt"}).config["method"] == TEXT
    assert apply_overrides(scenario, ['method="@notes.txt"']).config["method"] == "@notes.txt"


def test_all_files_together_are_limited(folder):
    half = "x" * (files.MAX_FILE_BYTES // 2 + 1)
    (folder / "notes.txt").write_text(half)
    (folder / "more.txt").write_text(half)
    text = NAMING.replace("width = 2.0", 'width = { file = "more.txt" }')
    assert "its files are over 8 MiB together" in refusal(parse_scenario, text, folder / "toy.toml")


def test_a_run_directory_holds_the_file(folder):
    scenario = apply_overrides(read_scenario(folder / "toy.toml"), ["rate=2"])
    begun(folder / "run", scenario)
    set_by_hand = apply_overrides(parse_scenario(GOOD, "toy.toml"), [f"method=@{folder}/notes.txt"])
    begun(folder / "other", set_by_hand)
    (folder / "notes.txt").unlink()
    for name in ("run", "other"):
        assert RunDirectory.open(folder / name).scenario().config["method"] == TEXT
    assert read_scenario(folder / "run/scenario.toml").config["method"] == TEXT


def test_a_text_is_no_number(folder):
    scenario = parse_scenario(GOOD, "toy.toml")
    message = refusal(apply_overrides, scenario, [f"rate=@{folder}/notes.txt"])
    assert "--set rate = " in message and "is no number; write one" in message
