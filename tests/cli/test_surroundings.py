"""Commands with closed streams, and the signals of batch systems."""

import json
import os
import signal
import subprocess
import sys

import pytest

from simkit.cli.main import Stops, Terminated, main
from tests.tables import every
from tests.toys import stored, toys  # noqa: F401


@every("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_commands_end_well_with_closed_streams(closed, tmp_path):
    run = f"{sys.executable} -m simkit.cli.main list {closed}; echo $? > {tmp_path}/code"
    told = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
    assert (tmp_path / "code").read_text() == "0\n" and not told.stderr


@every("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU])
def test_signals_of_batch_systems_stop_like_sigterm(number):
    with pytest.raises(Terminated), Stops(last=False):
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 0.1)
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_platform_without_a_device_is_one_line(tmp_path):
    words = [sys.executable, "-m", "simkit.cli.main", "show", "projectile", "--quantities", "--json"]
    environment = os.environ | {"JAX_PLATFORMS": "cuda"}
    told = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert told.returncode == 2 and "Traceback" not in told.stderr
    line = told.stderr.splitlines()[-1]
    assert line.startswith("simkit: JAX_PLATFORMS = cuda: JAX finds no such device here")
    assert line.endswith("; unset it, or set it to cpu")
    assert json.loads(told.stdout)["error"]["key"] == "JAX_PLATFORMS"


def test_a_lack_of_memory_advises_what_the_verb_has(stored, monkeypatch, capsys):  # noqa: F811
    def exhausted(*unused):
        raise MemoryError

    monkeypatch.setattr("simkit.jobs.runs.run_all", exhausted)
    assert main(["resume", str(stored.path), "--no-render"]) == 2
    assert "--set" not in (told := capsys.readouterr().err) and "resume it where more memory is free" in told
