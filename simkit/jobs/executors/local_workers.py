"""Worker processes on this machine that compute chunks of a sweep side by side."""

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
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError
from simkit.jobs.child_processes import ending, last_line, share_cores
from simkit.jobs.executors.executor import MOST_TRIES, Tally, Tries
from simkit.jobs.executors.worker import refuse_other_versions
from simkit.storage.files import DamagedFileError, remove_leftovers
from simkit.storage.software import versions

if TYPE_CHECKING:
    from simkit.jobs.callbacks import Report, Warn
    from simkit.jobs.chunks import Chunks
    from simkit.storage.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class LocalWorkers:
    """Processes of this machine, each with its share of the cores.

    A worker that dies or is silent for too long is replaced, and its chunk computed once more. Those of a driver that
    was killed end by themselves.

    Attributes:
        places: number of workers.
        deadline: seconds without a word from a worker, after which it counts as hung; a segment takes no longer.
        shares_memory: true, as all run on this machine.
        in_this_process: false.
    """

    places: int
    deadline: float
    shares_memory: bool = True
    in_this_process: bool = False

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Compute chunks, see `simkit.jobs.executors.executor.Executor.run`."""
        directory, tally = chunks.home, Tally(chunks, indices, report)
        tries, waiting, failed_starts = Tries(directory.path, warn), list(reversed(indices)), 0
        with contextlib.ExitStack() as closing, selectors.DefaultSelector() as selector:

            def start(place: int) -> None:
                worker = closing.enter_context(_Worker(directory, place, self.places))
                selector.register(worker.told, selectors.EVENT_READ, worker)

            def replace(worker: _Worker, reason: str) -> None:
                nonlocal failed_starts
                selector.unregister(worker.told)
                worker.end()
                if worker.chunk is not None:
                    waiting.append(worker.chunk)
                    tries.failed(worker.chunk, reason)
                else:
                    failed_starts += 1
                    if failed_starts >= MOST_TRIES:
                        raise UserError(f"{directory.path}: no worker process can be started ({reason})")
                start(worker.place)

            def messages() -> Iterator[tuple[_Worker, dict[str, Any]]]:
                for key, _ in selector.select(timeout=1.0):
                    said = key.data.read()
                    if said is None:
                        replace(key.data, key.data.reason_of_end())
                    for message in said or ():
                        yield key.data, message

            for place in range(min(self.places, len(indices))):
                start(place)
            left = len(indices)
            while left:
                for worker, message in messages():
                    match message:
                        case {"ready": theirs}:
                            refuse_other_versions(versions(), theirs, "a worker process")
                        case {"progress": index, "done": fraction}:
                            tally.tell(index, fraction)
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
                                tries.failed(index, str(error))
                                continue
                            left -= 1
                            tally.tell(index, 1.0)
                            yield index, arrays
                for key in list(selector.get_map().values()):
                    worker = key.data
                    if worker.is_idle and waiting:
                        index = waiting.pop()
                        worker.ask(index, tries.parts(index))
                    elif worker.chunk is not None and time.monotonic() - worker.heard > self.deadline:
                        replace(worker, f"its worker was silent for {self.deadline:g} s and was killed")
        remove_leftovers(directory.path)


class _Worker:
    """A worker process, and which chunk it computes.

    Attributes:
        place: its number, from 0.
        chunk: the number of the chunk that it computes, or ``None``.
        heard: when it last said something.
        told: what it writes.

    Args:
        directory: of the sweep.
        place: its number.
        places: how many workers there are.
    """

    def __init__(self, directory: "RunDirectory", place: int, places: int) -> None:
        self.place = place
        self.chunk: int | None = None
        self.heard = time.monotonic()
        self._ready, self._rest = False, b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        # -P: modules are those of this process, not what happens to lie in the folder the user is in. A session of its
        # own: Ctrl-C reaches the driver alone, which ends its workers.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "simkit.jobs.executors.worker", str(directory.path), directory.identity],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.told = self._process.stdout
        share_cores(self._process, place, places)

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *unused: object) -> None:
        self.end()

    @property
    def is_idle(self) -> bool:
        """Whether it can be asked for a chunk."""
        return self._ready and self.chunk is None

    def ask(self, index: int, parts: int) -> None:
        """Ask for a chunk.

        Args:
            index: of the chunk.
            parts: into how many it is divided.
        """
        self.chunk, self.heard = index, time.monotonic()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # one that died is noticed by its output
            self._process.stdin.write(json.dumps({"chunk": index, "parts": parts}).encode() + b"\n")
            self._process.stdin.flush()

    def read(self) -> list[dict[str, Any]] | None:
        """Return its messages since the last call, or ``None`` if the process has ended."""
        data = os.read(self.told.fileno(), 1 << 16)
        if not data:
            return None
        self.heard = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        self._ready |= any("ready" in message for message in messages)
        return messages

    def reason_of_end(self) -> str:
        """Return how the process ended, in words."""
        code = self._process.wait()
        memory = ", as for want of memory" if -code == signal.SIGKILL else ""
        why = memory if code < 0 else f": {last_line(self._errors) or 'nothing was said'}"
        return f"its worker {ending(code)}{why}"

    def end(self) -> None:
        """Kill it, if it lives."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self.told, self._errors):
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()
