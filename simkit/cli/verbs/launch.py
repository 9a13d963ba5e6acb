"""Run, resume or differentiate in several processes of this machine, over which fields or random seeds are divided."""

import argparse
import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from simkit.cli.main import DIFFERS, FAILED, FINE, INTERRUPTED, TERMINATED, WRONG_INPUT, Terminated
from simkit.errors import UserError
from simkit.jobs.child_processes import ending, last_line

# Verbs, and what to do if a process is lost.
VERBS = {verb: "resume with: simkit resume RUN" for verb in ("run", "resume")} | {"grad": "run the command again"}
MOST = 256
# Seconds for the first process to detect and report that another one has ended.
GRACE = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("-n", "--number", type=int, required=True, metavar="N", help="number of processes")
    parser.add_argument("verb", metavar="VERB", help=f"{', '.join(VERBS)}, followed by its arguments")
    parser.add_argument("words", metavar="...", nargs=argparse.REMAINDER, help="arguments of the verb")


def main(arguments: argparse.Namespace) -> int:
    """Start the processes, wait for the first one, and return its exit code."""
    count, words = arguments.number, [arguments.verb, *arguments.words]
    if arguments.verb not in VERBS:
        raise UserError(f"launch has no verb {arguments.verb!r:.40}; choose one of {', '.join(VERBS)}")
    if not 2 <= count <= MOST:
        raise UserError(f"-n {count} is not from 2 to {MOST}; leave launch out for one process")
    if arguments.json:
        words.append("--json")
    address = f"127.0.0.1:{_free_port()}"
    with contextlib.ExitStack() as closing:
        logs = [closing.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        processes = [_started(words, count, index, address, logs[index]) for index in range(count)]
        closing.callback(_end, processes)
        code = _wait(processes)
        if code not in (FINE, DIFFERS, WRONG_INPUT, FAILED, INTERRUPTED, TERMINATED):
            reasons = _reasons(processes, logs)
            print(f"simkit: process 0 {ending(code)}; {reasons}; {VERBS[arguments.verb]}", file=sys.stderr)
            return FAILED
        return code


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _started(words: list[str], count: int, index: int, address: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    options = ["--processes", str(count), "--process-id", str(index), "--coordinator", address]
    return subprocess.Popen(
        # As for workers of sweeps: modules are those of this process, and Ctrl-C reaches only this process.
        [sys.executable, "-P", "-m", "simkit.cli.main", *words, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if index else None,
        stderr=log if index else None,
        start_new_session=True,
    )


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    """Return the exit code of the first process; stop signals are passed on to it, and failures of others detected."""
    first, *others = processes
    signaled = False
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
            if signaled:
                first.kill()
            signaled = True
            first.send_signal(signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait a moment for the processes to exit, and kill those that do not."""
    for process in processes:
        try:
            process.wait(GRACE / len(processes))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


def _reasons(processes: Sequence[subprocess.Popen[bytes]], logs: Sequence[IO[bytes]]) -> str:
    """Return the failures of the other processes, in words."""
    reasons = []
    for index, process in enumerate(processes[1:], 1):
        if (code := process.poll()) not in (None, FINE):
            line = last_line(logs[index])
            reasons.append(f"process {index} {ending(code)}{': ' * bool(line)}{line}")
    return "; ".join(reasons) or "the others are running"
