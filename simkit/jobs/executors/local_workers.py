"""Executor with worker processes on this machine, which compute chunks of a sweep in parallel."""

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from typing import IO, Any

import numpy as np

from simkit.core.parts import part
from simkit.core.settings import whole
from simkit.errors import UserError
from simkit.jobs.child_processes import ending, last_line, share_cores
from simkit.jobs.chunks import Chunks
from simkit.jobs.executors.executor import DEADLINE, MOST_TRIES, Tally, Tries
from simkit.jobs.executors.worker import refuse_other_versions
from simkit.jobs.reporting import Report, Warn
from simkit.storage.files import DamagedFileError, remove_leftovers
from simkit.storage.manifest import versions
from simkit.storage.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class LocalWorkers:
    """Processes of this machine, each with its share of the cores.

    A worker that dies or sends no message for too long is replaced, and its chunk computed again. Workers end by
    themselves if their driver is killed.

    Attributes:
        concurrency: number of workers.
        deadline: seconds without a message after which a worker counts as hung; longer than a segment takes.
        shares_memory: true, since all workers run on this machine.
        in_this_process: false.
    """

    concurrency: int
    deadline: float
    shares_memory: bool = True
    in_this_process: bool = False

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
        """Compute chunks, see `simkit.jobs.executors.executor.Executor.run`."""
        directory, tally = chunks.run_directory, Tally(chunks, indices, report)
        tries, waiting, failed_starts = Tries(directory.path, warn), list(reversed(indices)), 0
        with contextlib.ExitStack() as closing, selectors.DefaultSelector() as selector:

            def start(index: int) -> None:
                worker = closing.enter_context(_Worker(directory, index, self.concurrency))
                selector.register(worker.output, selectors.EVENT_READ, worker)

            def replace(worker: _Worker, reason: str) -> None:
                nonlocal failed_starts
                selector.unregister(worker.output)
                worker.end()
                if worker.chunk is not None:
                    waiting.append(worker.chunk)
                    tries.record_failure(worker.chunk, reason)
                else:
                    failed_starts += 1
                    if failed_starts >= MOST_TRIES:
                        raise UserError(f"{directory.path}: no worker process can be started ({reason})")
                start(worker.index)

            def messages() -> Iterator[tuple[_Worker, dict[str, Any]]]:
                for key, _ in selector.select(timeout=1.0):
                    received = key.data.read()
                    if received is None:
                        replace(key.data, key.data.reason_of_end())
                    for message in received or ():
                        yield key.data, message

            for index in range(min(self.concurrency, len(indices))):
                start(index)
            missing = len(indices)
            while missing:
                for worker, message in messages():
                    match message:
                        case {"ready": theirs}:
                            refuse_other_versions(versions(), theirs, "a worker process")
                        case {"progress": index, "done": fraction}:
                            tally.update(index, fraction)
                        case {"warning": words}:
                            warn(words)
                        case {"refused": words}:
                            raise UserError(words)
                        case {"finished": index}:
                            worker.chunk = None
                            try:
                                arrays = chunks.read(index)
                            except DamagedFileError as error:
                                waiting.append(index)
                                tries.record_failure(index, str(error))
                                continue
                            missing -= 1
                            tally.update(index, 1.0)
                            yield index, arrays
                for key in list(selector.get_map().values()):
                    worker = key.data
                    if worker.is_idle and waiting:
                        index = waiting.pop()
                        worker.request(index, tries.parts(index))
                    elif worker.chunk is not None and time.monotonic() - worker.last_message > self.deadline:
                        replace(worker, f"its worker sent nothing for {self.deadline:g} s and was killed")
        remove_leftovers(directory.path)


class _Worker:
    """A worker process and the chunk that it computes.

    Attributes:
        index: index of the worker, from 0.
        chunk: index of the chunk that it computes, or ``None``.
        last_message: time of its last message, in seconds.
        output: its standard output.

    Args:
        directory: run directory of the sweep.
        index: index of the worker.
        count: number of workers.
    """

    def __init__(self, directory: "RunDirectory", index: int, count: int) -> None:
        self.index = index
        self.chunk: int | None = None
        self.last_message = time.monotonic()
        self._ready, self._rest = False, b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        # -P: modules are those of this process, not files of the current folder. A new session: Ctrl-C reaches only the
        # driver, which ends its workers.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "simkit.jobs.executors.worker", str(directory.path), directory.identity],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            # Each process would reserve memory of a GPU on which it computes nothing.
            env=os.environ | ({"JAX_PLATFORMS": "cpu"} if directory.manifest.get("device") == "cpu" else {}),
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout
        share_cores(self._process, index, count)

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *unused: object) -> None:
        self.end()

    @property
    def is_idle(self) -> bool:
        """Whether a chunk can be requested from it."""
        return self._ready and self.chunk is None

    def request(self, index: int, parts: int) -> None:
        """Request a chunk.

        Args:
            index: index of the chunk.
            parts: number of parts, see `simkit.jobs.chunks.Chunks.compute`.
        """
        self.chunk, self.last_message = index, time.monotonic()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a dead worker is detected by the end of its output
            self._process.stdin.write(json.dumps({"chunk": index, "parts": parts}).encode() + b"\n")
            self._process.stdin.flush()

    def read(self) -> list[dict[str, Any]] | None:
        """Return the messages since the last call, or ``None`` if the process has ended."""
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            return None
        self.last_message = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        self._ready |= any("ready" in message for message in messages)
        return messages

    def reason_of_end(self) -> str:
        """Return how the process ended, in words."""
        code = self._process.wait()
        memory = ", perhaps for lack of memory" if -code == signal.SIGKILL else ""
        reason = memory if code < 0 else f": {last_line(self._errors) or 'no message'}"
        return f"its worker {ending(code)}{reason}"

    def end(self) -> None:
        """Kill the process, if it is alive, and close its files."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self.output, self._errors):
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()


@part(keys={"workers": whole("number of processes on this machine", low=1, high=1024), "deadline": DEADLINE})
def workers(workers: int, deadline: float) -> LocalWorkers:
    """Return the executor with processes of this machine."""
    return LocalWorkers(workers, deadline)
