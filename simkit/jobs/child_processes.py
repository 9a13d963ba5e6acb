"""Processes that this one starts to compute with it: their share of the cores, and how they end."""

import contextlib
import os
import signal
import subprocess
from typing import IO

from simkit.errors import one_line


def share_cores(process: subprocess.Popen[bytes], place: int, places: int) -> None:
    """Give a process its share of the cores, if there is one for each: programs that all use all wait for one another.

    Args:
        process: one of several that compute side by side.
        place: its number, from 0.
        places: how many there are.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if 1 < places <= len(cores):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, cores[place::places])


def ending(code: int) -> str:
    """Return how a process ended, in words.

    Args:
        code: as `subprocess.Popen.wait` returns it.
    """
    if code < 0:
        return f"was killed by {signal.Signals(-code).name if -code in set(signal.Signals) else -code}"
    return f"ended with code {code}"


def last_line(said: IO[bytes]) -> str:
    """Return the last line that a process wrote into a file; empty if there is none.

    Args:
        said: the file.
    """
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return one_line(lines[-1]) if lines else ""
