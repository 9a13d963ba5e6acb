"""Ctrl-C, SIGTERM and a second process: one line each, without loss of stored work."""

import shlex
import signal
import subprocess
import sys
import time

import pytest

from simkit.cli.main import SAME_STOP, Stops, Terminated, main
from simkit.cli.progress import Progress
from tests.reliability.faults import everything
from tests.reliability.killing import TOYS, environment
from tests.toys import PENDULUMS

LONG = ["run", "./toy.toml", "--set", "steps=1600000", "--set", "every=40000", "--no-render"]


def test_running_job_is_locked_and_stops_in_order_when_terminated_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    folder = tmp_path / "my run"
    process = subprocess.Popen(
        [*TOYS, *LONG, "--output", "my run"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        waited = time.monotonic() + 60
        while not (folder / "segments" / "000001.npz").exists() and process.poll() is None:
            assert time.monotonic() < waited
            time.sleep(0.01)
        # The process is paused, so that it does not end before it is interrupted.
        process.send_signal(signal.SIGSTOP)
        for words in (["resume", "my run", "--no-render"], [*LONG, "--output", "my run", "--overwrite"]):
            assert main(words) == 2
            assert "being written by another process" in (told := capsys.readouterr().err)
            assert told.count("\n") == 1
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143
    # On a busy machine a plain line of progress may come first.
    line = told.splitlines()[-1]
    assert line == "simkit: terminated; resume with: simkit resume 'my run'"
    assert "Traceback" not in told
    segments = len(list((folder / "segments").iterdir()))
    assert 1 < segments < 41
    assert not list(folder.rglob("*.tmp"))
    # The named command resumes the run.
    program, *words = shlex.split(line.partition("resume with: ")[2])
    assert program == "simkit"
    assert main([*words, "--no-render"]) == 0
    assert main([*LONG, "--output", "whole"]) == 0
    assert everything(folder) == everything(tmp_path / "whole")


@pytest.fixture
def interruptible():
    """SIGINT as in a terminal; a shell that starts the tests in the background has it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


WORK = {
    "run": ["run", "--no-render"],
    "sweep": ["sweep", "--over", "frequency=1,2", "--chunk", "1"],
    "optimize": ["optimize", "--wrt", "frequency", "--iterations", "4", "--method", "adam", "--no-render"],
    "grad": ["grad", "--wrt", "frequency"],
}
STOPS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


# Kinds of work, moments and signals, in pairs.
CASES = [
    ("run", 1, signal.SIGINT),
    ("run", 4, signal.SIGTERM),
    ("sweep", 4, signal.SIGINT),
    ("optimize", 1, signal.SIGTERM),
    ("optimize", 4, signal.SIGINT),
    ("grad", 4, signal.SIGTERM),
]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("kind", "moment", "number"), CASES)
def test_a_stop_names_the_command_that_resumes(kind, moment, number, tmp_path, monkeypatch, capsys):
    verb, *options = WORK[kind]
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    monkeypatch.chdir(tmp_path)
    told, leave = [], Progress.__exit__

    def stop(self, fraction, words=""):
        told.append(fraction)
        if len(told) == moment:
            signal.raise_signal(number)

    def stop_again(self, *exception):
        # Shells send a signal to the process and to its group.
        signal.raise_signal(number)
        leave(self, *exception)

    handlers = [signal.getsignal(number) for number in STOPS]
    with monkeypatch.context() as patched:
        patched.setattr(Progress, "update", stop)
        patched.setattr(Progress, "__exit__", stop_again)
        code, word = STOPS[number]
        assert main([verb, "./toy.toml", *options, "--output", "work", "--json"]) == code
    assert [signal.getsignal(number) for number in STOPS] == handlers
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == f"simkit: {word}; resume with: simkit resume work"
    assert f'"exit_code": {code}' in captured.out
    quiet = ["--no-render"] if verb in ("run", "optimize") else []
    assert main(["resume", "work", *quiet]) == 0
    assert main([verb, "./toy.toml", *options, "--output", "whole"]) == 0
    assert everything(tmp_path / "work") == everything(tmp_path / "whole")


def test_a_signal_ignored_by_the_parent_process_stays_ignored():
    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Stops(last=False):
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, former)


@pytest.mark.usefixtures("interruptible")
def test_a_later_signal_stops_work_that_the_first_one_did_not(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("simkit.cli.main.time.monotonic", lambda: clock[0])
    with Stops(last=False) as stops:
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        clock[0] += SAME_STOP
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        stops.finish()
        clock[0] += SAME_STOP
        signal.raise_signal(signal.SIGTERM)


def test_ctrl_c_while_drawing_names_the_command_that_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("simkit.export.pictures.draw", interrupt)
        assert main(["run", "bouncing_ball", "--set", "steps=30", "--output", "work"]) == 130
    # On a busy machine a plain line of progress may come first.
    assert capsys.readouterr().err.splitlines()[-1] == "simkit: interrupted; resume with: simkit resume work"
    assert main(["resume", "work", "--format", "png"]) == 0
    assert (tmp_path / "work" / "bouncing_ball.png").exists()


def test_ctrl_c_before_the_run_exists_names_no_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("simkit.jobs.runs.build", interrupt)
    assert main(["run", "bouncing_ball", "--output", "work"]) == 130
    assert capsys.readouterr().err == "simkit: interrupted\n"
    assert not list(tmp_path.iterdir())


# Waits while the process ends, after Python has given its handlers up.
ENDING = """
import ctypes, sys, time
from simkit.cli.main import Stops, Terminated
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.getchar, ctypes.c_void_p), None, None)
with Stops(last=True) as stops:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except Terminated:
        stops.finish()
print("ended", flush=True)
sys.exit(143)
"""


def test_a_signal_while_a_stopped_process_ends_leaves_its_exit_code():
    command = [sys.executable, "-c", ENDING]
    process = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "ended\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
