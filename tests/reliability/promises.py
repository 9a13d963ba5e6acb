"""The promise about wrong input of the command line, checked for one command in this process, without its work."""

import collections
import contextlib
import dataclasses
import functools
import importlib
import io
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax

from simkit.cli.main import main, warnings_as_lines
from simkit.cli.output import as_line
from simkit.errors import UserError
from simkit.plugins import Registry
from simkit.storage.kinds import KINDS, kind_of
from tests.reliability.fuzzing import KINDS as INPUTS
from tests.reliability.fuzzing import Command

CODES = (0, 1, 2, 3, 130, 143)
SECONDS, MEBIBYTES, LONGEST_LINE = 1.0, 300.0, 3000
WARNING = "simkit: warning: "
# A remedy is after a semicolon, if it is not itself the reason ("give either ...").
REMEDY = re.compile(r"; |\bgive |\bsee ")
# A command that takes this long hangs, and more address space than this is a failed allocation.
HANGS, ADDRESSES = 120, 6 * 2**30
# Seconds of processor time to trace a simulation, which a wrong file may need before its mistake is found.
TRACING = {"scenario files built": 8.0, "command lines": 8.0}
CACHED = 100


class AcceptedError(Exception):
    """A command whose input was accepted, at the beginning of its work."""


@dataclasses.dataclass(frozen=True)
class Observed:
    """What a command did.

    Attributes:
        code: exit code; 0 if its work would begin; the traceback of an error instead.
        lines: of standard error.
        seconds: of processor time.
        mebibytes: largest memory during the command, beyond that before it.
        changed: files and folders that are new, gone or changed.
    """

    code: int | str
    lines: list[str]
    seconds: float
    mebibytes: float
    changed: list[str]

    def broken(self, patience: float = 0.0) -> str:
        """Return which promise the command broke, in words; empty if none.

        Args:
            patience: seconds of processor time allowed besides, such as those of tracing a large simulation.
        """
        if isinstance(self.code, str):
            return f"traceback: {self.code}"
        if self.code not in CODES:
            return f"exit code {self.code}"
        if odd := [line for line in self.lines if not line.startswith("simkit: ") or not line.isprintable()]:
            return f"a line of another form: {odd[0]!r:.300}"
        if long := [line for line in self.lines if len(line) > LONGEST_LINE]:
            return f"a line of {len(long[0])} characters: {long[0]:.300}"
        if self.code != 2:
            return ""
        if all(line.startswith(WARNING) for line in self.lines):
            return "no reason"
        if bare := [line for line in self.lines if not REMEDY.search(line) and not line.startswith(WARNING)]:
            return f"a line without a remedy: {bare[0]:.1000}"
        if self.changed:
            return f"left behind: {self.changed}"
        if self.seconds > SECONDS + patience:
            return f"{self.seconds:.2f} s: {self.lines[-1]:.200}"
        return f"{self.mebibytes:.0f} MiB: {self.lines[-1]:.200}" if self.mebibytes > MEBIBYTES else ""


@contextlib.contextmanager
def without_work() -> Iterator[None]:
    """Context in which the work of every verb raises `AcceptedError` where it would begin."""

    def accepted(*unused: Any, **more: Any) -> None:
        raise AcceptedError

    derivatives = importlib.import_module("simkit.jobs.derivatives")
    prepared = derivatives.prepared

    def built(*arguments: Any) -> None:
        with prepared(*arguments):
            raise AcceptedError

    with contextlib.ExitStack() as patches:
        for kind in KINDS:
            patches.enter_context(mock.patch.object(kind_of(kind), "execute", accepted))
        for module in ("derivatives", "differentiation"):
            patches.enter_context(mock.patch(f"simkit.jobs.{module}.prepared", built))
        patches.enter_context(mock.patch("simkit.export.programs.exporting.references", accepted))
        # The search for installed packages takes most of the time of a short command.
        patches.enter_context(mock.patch.object(Registry, "_entry_points", functools.cache(Registry._entry_points)))
        patches.enter_context(mock.patch("simkit.export.page.exporting.preview_of", accepted))
        yield


@contextlib.contextmanager
def bounded(folder: Path) -> Iterator[None]:
    """Context in the folder, with bounded address space and time, and temporary files in the folder."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"no end after {HANGS} s")

    here, former = Path.cwd(), signal.signal(signal.SIGALRM, stop)
    limits, temporary = resource.getrlimit(resource.RLIMIT_AS), tempfile.tempdir
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") * 2**10 + ADDRESSES, limits[1]))
    signal.alarm(HANGS)
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        signal.alarm(0)
        tempfile.tempdir = temporary
        os.chdir(here)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, former)


def observe(folder: Path, command: Callable[[], int]) -> Observed:
    """Return what a command does in a folder.

    Args:
        folder: its current folder.
        command: function that returns its exit code.
    """
    before = _contents(folder)
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the largest memory begins anew
    memory, begin = _memory("VmRSS"), time.process_time()
    with bounded(folder), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            with warnings_as_lines():
                code: int | str = command()
        except AcceptedError:
            code = 0
        except UserError as error:
            print(f"simkit: {as_line(str(error))}", file=sys.stderr)
            code = 2
        except SystemExit as stop:  # of --help
            code = stop.code if isinstance(stop.code, int) else 0
        except BaseException as error:
            code = "".join(traceback.format_exception(error, limit=-6))
    seconds, most = time.process_time() - begin, _memory("VmHWM")
    errors.flush()
    lines = errors.buffer.getvalue().decode().split("\n")[:-1]
    after = _contents(folder)
    changed = sorted({name for name, _ in before.items() ^ after.items()})
    return Observed(code, lines, seconds, (most - memory) / 2**10, changed)


def attempt(folder: Path, command: Command) -> Observed:
    """Return what ``simkit`` does with the words of a command line, or with another command, without its work."""
    return observe(folder, command if callable(command) else lambda: main(command))


def emptied(folder: Path) -> Path:
    """Return a folder, made empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(folder):
        shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else Path(entry).unlink()
    return folder


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for place, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            status = os.lstat(os.path.join(place, name))
            found[os.fsdecode(os.path.join(place, name))] = (
                status.st_size if name in files else 0,
                status.st_mtime_ns if name in files else 0,
            )
    return found


def _memory(name: str) -> int:
    """Return a size of this process in KiB, such as ``"VmRSS"``; 0 where the system does not tell."""
    try:
        return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    except OSError:
        return 0


def fuzz(kind, numbers, folder):
    """Return the number of cases by exit code, and what is broken."""
    codes, broken = collections.Counter(), []
    with without_work():
        for number in numbers:
            # What exceeds the time or memory is measured again, with all modules imported.
            for _ in range(2):
                moments = random.Random(f"{kind} {number}")
                command = INPUTS[kind](moments, emptied(folder))
                found = attempt(folder, command)
                if not (reason := found.broken(TRACING.get(kind, 0.0))):
                    break
            else:
                broken.append(f"{kind} {number}: {command if isinstance(command, list) else ''} {reason}")
            codes[found.code] += 1
            if number % CACHED == CACHED - 1:
                jax.clear_caches()
    return codes, broken
