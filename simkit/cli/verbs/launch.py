"""Run or resume one simulation in several processes of this machine, each of which holds a part of its fields."""

import argparse
import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from simkit.cli.interrupt import Terminated
from simkit.cli.main import DIFFERS, FAILED, FINE, INTERRUPTED, TERMINATED, WRONG_INPUT
from simkit.errors import UserError
from simkit.jobs.child_processes import ending, last_line, share_cores

VERBS = ("run", "resume")
MOST = 256
# Seconds that the first process has to notice that another one has ended, and to say so.
GRACE = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("-n", "--number", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("verb", metavar="VERB", help=f"{' or '.join(VERBS)}, with all that belongs to it behind it")
    parser.add_argument("words", metavar="...", nargs=argparse.REMAINDER, help="what the verb takes")


def main(arguments: argparse.Namespace) -> int:
    """Start the processes, wait for the first one, and return its exit code."""
    count, words = arguments.number, [arguments.verb, *arguments.words]
    if arguments.verb not in VERBS:
        raise UserError(f"launch knows no verb {arguments.verb!r:.40}; choose {' or '.join(VERBS)}")
    if not 2 <= count <= MOST:
        raise UserError(f"-n {count} is not from 2 to {MOST}; leave launch out for one process")
    if arguments.json:
        words.append("--json")
    address = f"127.0.0.1:{_free_port()}"
    with contextlib.ExitStack() as closing:
        said = [closing.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        processes = [_started(words, count, index, address, said[index]) for index in range(count)]
        closing.callback(_end, processes)
        code = _waited(processes)
        if code not in (FINE, DIFFERS, WRONG_INPUT, FAILED, INTERRUPTED, TERMINATED):
            print(f"simkit: process 0 {ending(code)}; {_last_words(processes, said)}", file=sys.stderr)
            return FAILED
        return code


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _started(words: list[str], count: int, index: int, address: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
    options = ["--processes", str(count), "--process-id", str(index), "--coordinator", address]
    process = subprocess.Popen(
        # As for workers of sweeps: the modules are those of this process, and Ctrl-C reaches this process alone.
        [sys.executable, "-P", "-m", "simkit.cli.main", *words, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if index else None,
        stderr=said if index else None,
        start_new_session=True,
    )
    share_cores(process, index, count)
    return process


def _waited(processes: list[subprocess.Popen[bytes]]) -> int:
    """Return the exit code of the first process; it is told of what stops this one, and of others that ended."""
    first, *others = processes
    asked = False
    while True:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return first.wait(0.5)
            if any(process.poll() not in (None, FINE) for process in others):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return first.wait(GRACE)
                first.kill()
                return first.wait()
        except KeyboardInterrupt as interrupt:
            if asked:
                first.kill()
            asked = True
            first.send_signal(signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Give the processes a moment to leave, and kill those that do not."""
    for process in processes:
        try:
            process.wait(GRACE / len(processes))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


def _last_words(processes: Sequence[subprocess.Popen[bytes]], said: Sequence[IO[bytes]]) -> str:
    """Return why another process ended, if one did, and how to go on."""
    reasons = []
    for index, process in enumerate(processes[1:], 1):
        if (code := process.poll()) not in (None, FINE):
            line = last_line(said[index])
            reasons.append(f"process {index} {ending(code)}{': ' * bool(line)}{line}")
    return f"{'; '.join(reasons) or 'the others live'}; what is stored can be resumed"
