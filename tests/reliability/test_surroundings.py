"""Jobs where the machine gives less than usual: few open files, a clock that is set back, no network."""

import os
import subprocess
import sys

from tests.reliability.faults import everything
from tests.tables import misses

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
# Several commands, one after the other, each a line of the standard input.
COMMANDS = """
import shlex
from simkit.cli.main import main
for line in sys.stdin:
    if code := main(shlex.split(line)):
        sys.exit(f"{code}: {line}")
"""
COMMAND = """
from simkit.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SHORT = "bouncing_ball --set steps=30 --set every=10"
WORK = {
    "run": f"run {SHORT} --no-render",
    "sweep": f"sweep {SHORT} --over launch_speed=3,4,5 --chunk 1 --no-render",
    "optimize": f"optimize {SHORT} --wrt launch_speed --iterations 3 --method adam --no-render",
    "grad": f"grad {SHORT} --wrt launch_speed",
}


def simkit(program, *words, folder, lines=""):
    command = [sys.executable, "-W", "ignore", "-c", f"import sys\n{program}", *words]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.run(
        command, cwd=folder, env=environment, input=lines, capture_output=True, text=True, check=False
    )


def test_results_do_not_depend_on_surroundings(tmp_path):
    scarce = WITHOUT_SOCKETS + BACKWARD + FEW_FILES.replace("FILES", "24")
    for name, preamble in {"usual": "", "scarce": scarce}.items():
        lines = "".join(f"{words} --output {name}/{kind}\n" for kind, words in WORK.items())
        ran = simkit(preamble + COMMANDS, folder=tmp_path, lines=lines)
        assert ran.returncode == 0, ran.stderr
    assert not misses(
        [(kind,) for kind in WORK],
        lambda kind: everything(tmp_path / "scarce" / kind) == everything(tmp_path / "usual" / kind),
    )


def test_too_few_open_files_are_one_line_that_names_the_limit(tmp_path):
    ran = simkit(FEW_FILES.replace("FILES", "4") + COMMAND, "launch", "-n", "2", "run", "channel_flow", folder=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "Too many open files; raise the limit with ulimit -n" in ran.stderr
    assert not list(tmp_path.iterdir())
