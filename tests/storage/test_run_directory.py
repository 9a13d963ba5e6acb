import dataclasses
import json
import os

import pytest

import simkit
from simkit.errors import UserError
from simkit.scenario.scenario import Scenario
from simkit.storage.run_directory import RunDirectory, check_output
from tests.tables import every
from tests.toys import begun, toy


def test_scenario_is_read_back_exactly(stored):
    scenario = RunDirectory.open(stored.path).scenario()
    expected = toy(frequency=0.1 + 0.2, seed=7)
    assert isinstance(scenario, Scenario)
    for field in ("name", "config", "parameters", "run", "objectives", "render", "text"):
        assert getattr(scenario, field) == getattr(expected, field)


def test_text_with_other_line_ends_is_read_back(tmp_path):
    scenario = dataclasses.replace(toy(), text=toy().text.replace("\n", "\r\n") + "# \u03bc\r\n")
    created = begun(tmp_path / "run", scenario)
    assert RunDirectory.open(created.path).scenario().parameters == scenario.parameters


def test_manifest_records_what_decides_the_bytes(stored):
    manifest = json.loads((stored.path / "manifest.json").read_text())
    assert {"kind", "scenario", "values", "request", "versions", "devices"} <= set(manifest)
    assert manifest["versions"]["simkit"] == simkit.__version__
    assert {"python", "jax", "jaxlib", "numpy"} <= set(manifest["versions"])
    assert manifest["values"]["run"]["seed"] == 7


@pytest.mark.filterwarnings("ignore:.*manifest_copy.json takes the place")
def test_every_change_of_the_request_is_detected(stored):
    for name in ("manifest.json", "scenario.toml"):
        path = stored.path / name
        data = path.read_bytes()
        for position in range(0, len(data), 7):
            changed = bytearray(data)
            changed[position] ^= 1
            path.write_bytes(changed)
            try:
                opened = RunDirectory.open(stored.path)
            except UserError as error:
                assert "\n" not in str(error)
            else:
                # White space between JSON tokens is insignificant.
                assert opened.manifest == stored.manifest
        path.write_bytes(data)


@every("content", ["", "{}", "[]", "\x00", '{"format": 1, "kind": "run"}', '{"format": 99}'])
def test_folder_with_another_manifest_is_not_replaced(content, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(content)
    (folder / "index.html").write_text("precious")
    with pytest.raises(UserError):
        RunDirectory.open(folder)
    for overwrite in (False, True):
        with pytest.raises(UserError, match="not a run directory"):
            begun(folder, toy(), overwrite=overwrite)
    assert (folder / "index.html").read_text() == "precious"


def test_run_being_written_is_not_replaced(stored):
    with stored.locked(), pytest.raises(UserError, match="being written by another process"):
        begun(stored.path, toy(), overwrite=True)
    assert RunDirectory.open(stored.path).manifest == stored.manifest
    assert [path.name for path in stored.path.parent.iterdir()] == ["run"]


def test_run_being_written_is_not_resumed(stored):
    with stored.locked(), pytest.raises(UserError, match="being written by another process; wait for it to end"):
        simkit.resume(stored.path)


def test_leftovers_of_a_killed_creation_do_not_block_a_new_one(tmp_path):
    leftover = tmp_path / f".run.{os.getpid()}.tmp"
    leftover.mkdir()
    (leftover / "scenario.toml").write_text("half")
    begun(tmp_path / "run", toy())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_output_is_checked_before_any_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    check_output(tmp_path / "empty", overwrite=False)
    check_output(tmp_path / "a" / "b" / "c", overwrite=False)
    for path, message in [
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "file" / "run", "is not a folder"),
        (tmp_path, "the folder you are in"),
        (tmp_path.parent, "not empty"),
        (tmp_path / ("x" * 300), "File name too long"),
    ]:
        with pytest.raises(UserError, match=message):
            check_output(path, overwrite=True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match="no permission"):
        check_output(tmp_path / "new", overwrite=False)


def test_changed_software_is_reported(stored):
    told = []
    stored.warn_of_changes(told.append)
    assert told == []
    stored.manifest["versions"]["jax"] = "0.0.1"
    stored.warn_of_changes(told.append)
    assert len(told) == 1 and "jax 0.0.1 -> " in told[0]


def test_run_without_frames_is_refused_with_a_remedy(stored):
    with pytest.raises(UserError, match="holds no frames yet; finish it with: simkit resume"):
        simkit.open_run(stored.path)
