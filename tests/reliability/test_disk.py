"""Full disks: one line, exit code 2, no partial file, and the job can be resumed later."""

import os
import subprocess
import sys

import pytest

from simkit.cli.main import main
from simkit.storage import store
from tests.reliability.faults import everything
from tests.reliability.test_interrupt import WORK
from tests.toys import PENDULUMS, SPRINGS

BALL = ["run", "bouncing_ball", "--set", "steps=30", "--set", "every=3", "--no-render"]


@pytest.fixture
def pendulums(tmp_path):
    file = tmp_path / "toy_pendulums.toml"
    file.write_text(PENDULUMS)
    return str(file)


def fail_after(monkeypatch, count):
    """Let only ``count`` calls of fsync succeed."""
    synced, fsync = [], os.fsync

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) > count:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize("words", WORK.values(), ids=WORK)
def test_job_stopped_by_a_full_disk_resumes_after_space_is_freed(words, pendulums, tmp_path, monkeypatch, capsys):
    verb, *options = words
    # Every segment of a chunk is written.
    monkeypatch.setattr(store, "INTERVAL", 0.0)
    assert main([verb, pendulums, *options, "--output", str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    with monkeypatch.context() as patched:
        fail_after(patched, 15)
        assert main([verb, pendulums, *options, "--output", str(tmp_path / "work")]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and "No space left on device" in told.err
    assert not list((tmp_path / "work").rglob("*.tmp"))
    assert main(["resume", str(tmp_path / "work"), *(["--no-render"] if verb in ("run", "optimize") else [])]) == 0
    assert everything(tmp_path / "work") == everything(tmp_path / "whole")


def test_run_that_cannot_store_its_first_frame_leaves_nothing(pendulums, tmp_path, monkeypatch, capsys):
    fail_after(monkeypatch, 4)  # scenario, manifest, and their folder twice
    assert main(["run", pendulums, "--no-render", "--output", str(tmp_path / "work")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["toy_pendulums.toml"]


def test_file_size_limit_of_the_system_is_one_line(tmp_path):
    run = "-m simkit.cli.main run channel_flow --no-render --output run --set steps=40 --set every=10"
    ran = subprocess.run(
        # 8 KiB are more than the manifest and the scenario, and less than one frame of a flow.
        ["bash", "-c", f"ulimit -f 8; exec {sys.executable} {run}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1 and "File too large" in ran.stderr
    assert not list(tmp_path.iterdir())


def test_picture_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys):
    assert main([*BALL, "--output", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    with monkeypatch.context() as patched:
        fail_after(patched, 0)
        assert main(["render", str(tmp_path / "run"), "--format", "png"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list((tmp_path / "run").glob("*.png")) and not list((tmp_path / "run").glob(".*partial"))
    assert main(["render", str(tmp_path / "run"), "--format", "png"]) == 0


def test_output_below_a_file_is_one_line_for_every_verb(pendulums, tmp_path, capsys):
    (tmp_path / "springs.toml").write_text(SPRINGS)
    before = everything(tmp_path)
    below = str(tmp_path / "springs.toml" / "deep" / "work")
    for words in (
        ["run", pendulums, "--no-render"],
        ["sweep", pendulums, "--over", "frequency=1,2"],
        ["optimize", pendulums, "--wrt", "frequency"],
        ["grad", pendulums, "--wrt", "frequency"],
        ["export", pendulums],
        ["gallery", "bouncing_ball"],
    ):
        assert main([*words, "--output", below]) == 2, words
        told = capsys.readouterr()
        assert told.err.count("\n") == 1 and "Traceback" not in told.err
        assert everything(tmp_path) == before


def test_full_standard_output_gives_one_line(tmp_path):
    for words in (["list"], ["list", "--json"], ["show", "bouncing_ball"]):
        with open("/dev/full", "w") as full:
            ran = subprocess.run(
                [sys.executable, "-m", "simkit.cli.main", *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert ran.returncode == 1
        assert ran.stderr.count("\n") == 1 and "No space left on device" in ran.stderr


def test_closed_pipe_is_no_error():
    ran = subprocess.run(
        f"{sys.executable} -m simkit.cli.main list | true; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("0\n", "")
