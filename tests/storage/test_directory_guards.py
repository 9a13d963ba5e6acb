"""Protection of run directories against links, pipes, other processes, foreign files and crafted manifests."""

import json
import os
import re
import shutil
import signal

import pytest

import simkit
from simkit.errors import UserError
from simkit.storage.files import checksum, read_sealed_json, write_sealed_json
from simkit.storage.run_directory import RunDirectory
from tests.tables import every
from tests.toys import NOTHING, REQUESTS, begun, toy


@pytest.fixture
def fifo_alarm():
    """Fail instead of blocking on a pipe."""

    def stop(number, frame):
        raise TimeoutError("waited for a pipe")

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


@every("name", [".lock", "manifest.json", "scenario.toml", "summary.json", "checkpoint.npz"])
@every("kind", ["link", "pipe"])
def test_only_regular_files_are_opened_in_a_run_directory(name, kind, finished, tmp_path, fifo_alarm):
    precious, folder = tmp_path / "precious.txt", tmp_path / f"{kind}{name}"
    shutil.copytree(finished, folder)
    precious.write_text("precious")
    path = folder / name
    path.unlink()
    if kind == "link":
        path.symlink_to(precious)
    else:
        os.mkfifo(path)
    if name == ".lock":
        (folder / "checkpoint.npz").unlink()  # so that resuming needs the lock
    with pytest.raises(UserError, match=rf"{re.escape(name)} is a .* remove or rename it"):
        simkit.resume(folder)
    assert precious.read_text() == "precious"


def test_files_of_other_names_are_not_changed(run, tmp_path):
    expected = simkit.open_run(tmp_path / "run")
    strange = [tmp_path / "run" / "segments" / name for name in ("99.npz", "000001.npz.bak", "notes.txt")]
    for path in strange:
        path.write_text("precious")
    assert simkit.open_run(tmp_path / "run").identical(expected)
    (tmp_path / "run" / "checkpoint.npz").write_bytes(b"")
    with pytest.warns(UserWarning, match="cannot be used"):
        simkit.resume(tmp_path / "run")
    assert all(path.read_text() == "precious" for path in strange)


def test_overwriting_refuses_to_delete_what_no_run_wrote(run, tmp_path):
    for path in ("notes.txt", "photo.jpg", "segments/mine.npz"):
        (tmp_path / "run" / path).write_text("precious")
    held = r"\(notes.txt, photo.jpg, segments/mine.npz\), which overwrite=True would delete"
    with pytest.raises(UserError, match=held):
        simkit.run(toy(seed=3), output=tmp_path / "run", overwrite=True)
    assert RunDirectory.open(tmp_path / "run").scenario().run.seed == 0
    for path in ("notes.txt", "photo.jpg", "segments/mine.npz"):
        assert (tmp_path / "run" / path).read_text() == "precious"
        (tmp_path / "run" / path).unlink()
    (tmp_path / "run" / "toy_pendulums.gif").write_text("a picture of it")
    simkit.run(toy(seed=3), output=tmp_path / "run", overwrite=True)
    assert RunDirectory.open(tmp_path / "run").scenario().run.seed == 3
    assert not (tmp_path / "run" / "toy_pendulums.gif").exists()


@every("name", ["\ud800", "a\0b"])
def test_an_output_that_no_file_may_be_named_is_refused(name):
    with pytest.raises(UserError, match="has characters that no file name may have; leave them out"):
        simkit.run(toy(), output=name)


def test_a_new_run_is_locked_from_its_creation(tmp_path):
    with RunDirectory.created(tmp_path / "run", "run", toy(seed=1), NOTHING) as first:
        with pytest.raises(UserError, match="being written by another process"):
            begun(tmp_path / "run", toy(seed=2), overwrite=True)
        assert RunDirectory.open(tmp_path / "run").manifest == first.manifest
    begun(tmp_path / "run", toy(seed=2), overwrite=True)
    assert RunDirectory.open(tmp_path / "run").scenario().run.seed == 2


def test_run_of_the_first_format_is_refused_with_a_remedy(stored):
    old = {**stored.manifest, "format": 1, "checksum": "crc32 0123abcd"}
    (stored.path / "manifest.json").write_text(json.dumps(old))
    with pytest.raises(UserError, match="has format 1, of an earlier simkit, and this one reads format 2; run the"):
        simkit.open_run(stored.path)
    simkit.run(toy(), output=stored.path, overwrite=True)
    assert simkit.open_run(stored.path).sizes["time"] == 11


CRAFTED = {
    "kind": {"kind": "walk"},
    "kind list": {"kind": ["run"]},
    "request word": {"request": "all"},
    "no labels": {"request": {"arrays": {}}},
    "labels": {"request": {"labels": {"dimensions": {"x": 3}, "coordinates": {}, "quantities": {}}, "arrays": {}}},
    "arrays": {
        "request": {"labels": {"dimensions": {}, "coordinates": {}, "quantities": {}}, "arrays": {"x": ["object", [2]]}}
    },
    "quantities": {
        "request": {"labels": {"dimensions": {}, "coordinates": {}, "quantities": {"x": "m"}}, "arrays": {}}
    },
    "values": {"values": {"config": [], "params": {}, "run": {}}},
    "no run": {"values": {"config": {}, "params": {}}},
    "versions": {"versions": {"jax": 3}},
    "over list": {"kind": "sweep", "request": REQUESTS["sweep"] | {"over": [1.0, 2.0]}},
    "over words": {"kind": "sweep", "request": REQUESTS["sweep"] | {"over": {"frequency": ["a"]}}},
    "over unknown": {"kind": "sweep", "request": REQUESTS["sweep"] | {"over": {"speed": [1.0]}}},
    "over out of bounds": {"kind": "sweep", "request": REQUESTS["sweep"] | {"over": {"frequency": [1e9]}}},
    "no seeds": {"kind": "sweep", "request": REQUESTS["sweep"] | {"seeds": 0}},
    "half a chunk": {"kind": "sweep", "request": REQUESTS["sweep"] | {"chunk": 0.5}},
    "wrt": {"kind": "optimize", "request": REQUESTS["optimize"] | {"wrt": "frequency"}},
    "wrt unknown": {"kind": "optimize", "request": REQUESTS["optimize"] | {"wrt": ["speed"]}},
    "mode": {"kind": "optimize", "request": REQUESTS["optimize"] | {"mode": "sideways"}},
    "wrt of a derivative": {"kind": "grad", "request": REQUESTS["grad"] | {"wrt": [3]}},
    "objective of a derivative": {"kind": "grad", "request": REQUESTS["grad"] | {"objective": "speed"}},
    "no segments": {"kind": "grad", "request": REQUESTS["grad"] | {"segments": 0}},
    "seed": {"values": {"config": {}, "params": {}, "run": {"seed": -1}}},
    "parameter": {"values": {"config": {}, "params": {"speed": 1.0}, "run": {}}},
}


@every("change", CRAFTED.values(), ids=CRAFTED)
def test_crafted_manifest_with_the_right_checksum_gives_one_line(change, stored):
    manifest = {key: value for key, value in (stored.manifest | change).items() if key != "checksum"}
    text = (stored.path / "scenario.toml").read_text()
    (stored.path / "manifest.json").write_text(json.dumps(manifest | {"checksum": checksum(manifest, text)}))
    with pytest.raises(UserError) as caught:
        simkit.resume(stored.path)
    assert "\n" not in str(caught.value)


def test_a_crafted_status_is_detected(run, tmp_path):
    directory = RunDirectory.open(tmp_path / "run")
    summary = read_sealed_json(tmp_path / "run" / "summary.json", directory.identity)
    write_sealed_json(tmp_path / "run" / "summary.json", summary | {"status_code": 77}, directory.identity)
    with pytest.raises(UserError, match="holds an unknown status code; repair the run with: simkit resume"):
        simkit.open_run(tmp_path / "run")
    simkit.resume(tmp_path / "run")
    assert simkit.open_run(tmp_path / "run").attrs["status"] == "ok"
