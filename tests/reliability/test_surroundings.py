"""Jobs where the machine gives less than usual: few open files, a clock that is set back, no network."""

import os
import subprocess
import sys

import pytest

from tests.reliability.test_damage import everything

# Names of the interpreter's events: https://docs.python.org/3/library/audit_events.html
WITHOUT_SOCKETS = """
import sys

def audit(event, arguments):
    # Creating one is harmless, and some packages do to learn what the system supports.
    if event.startswith("socket.") and event != "socket.__new__":
        raise AssertionError(f"{event} {arguments}")

sys.addaudithook(audit)
"""
# Every reading of the clock of the day is an hour before the last one.
BACKWARD = """
import itertools, time
day = itertools.count(time.time(), -3600)
time.time = lambda: next(day)
time.time_ns = lambda: int(1e9 * next(day))
"""
FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
"""
COMMAND = """
from simkit.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SHORT = ["bouncing_ball", "--set", "steps=30", "--set", "every=10"]
WORK = {
    "run": ["run", *SHORT, "--no-render"],
    "sweep": ["sweep", *SHORT, "--over", "launch_speed=3,4,5", "--chunk", "1", "--no-render"],
    "optimize": ["optimize", *SHORT, "--wrt", "launch_speed", "--iterations", "3", "--method", "adam", "--no-render"],
    "grad": ["grad", *SHORT, "--wrt", "launch_speed"],
}


def simkit(preamble, *words, folder):
    command = [sys.executable, "-W", "ignore", "-c", f"import sys\n{preamble}{COMMAND}", *words]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", WORK.values(), ids=WORK)
def test_results_do_not_depend_on_surroundings(words, tmp_path):
    for name, preamble in {
        "usual": "",
        "scarce": WITHOUT_SOCKETS + BACKWARD + FEW_FILES.replace("FILES", "24"),
    }.items():
        ran = simkit(preamble, *words, "--output", name, folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert everything(tmp_path / "scarce") == everything(tmp_path / "usual")


def test_too_few_open_files_are_one_line_that_names_the_limit(tmp_path):
    ran = simkit(FEW_FILES.replace("FILES", "4"), "launch", "-n", "2", "run", "channel_flow", folder=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "Too many open files; raise the limit with ulimit -n" in ran.stderr
    assert not list(tmp_path.iterdir())
