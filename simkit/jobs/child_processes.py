"""Child processes that compute in parallel: their share of the cores, exit codes and last messages."""

import contextlib
import os
import re
import signal
import subprocess
from typing import IO

from simkit.errors import one_line


def share_cores(process: subprocess.Popen[bytes], index: int, count: int) -> None:
    """Bind a process to its share of the cores, if there are enough: independent processes slow each other down.

    Processes that exchange messages at every step are not bound: each waits on threads of its own, which then take a
    third of the time.

    Args:
        process: one of several processes that compute independently.
        index: index of the process, from 0.
        count: number of processes.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if 1 < count <= len(cores):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, cores[index::count])


def ending(code: int) -> str:
    """Return the exit of a process in words.

    Args:
        code: exit code from `subprocess.Popen.wait`.
    """
    if code < 0:
        return f"was killed by {signal.Signals(-code).name if -code in set(signal.Signals) else -code}"
    return f"ended with code {code}"


# Beginning of a line that XLA logs, which tells of what followed from the failure rather than of the failure.
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d")


def last_line(file: IO[bytes]) -> str:
    """Return the last line of a process's output that XLA did not log; empty if there is none.

    Args:
        file: file to which the output was redirected.
    """
    file.seek(0)
    lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not _LOGGED.match(line)]
    return one_line(lines[-1]) if lines else ""
