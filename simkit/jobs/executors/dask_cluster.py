"""Executor on a Dask cluster, whose workers compute chunks of a sweep and write them into a shared folder."""

import dataclasses
import json
import socket
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from simkit.core.parts import part
from simkit.core.settings import text
from simkit.errors import UserError, one_line, package
from simkit.jobs.chunks import Chunks
from simkit.jobs.executors.executor import DEADLINE, Tally, Tries
from simkit.jobs.executors.worker import compute, refuse_other_versions
from simkit.jobs.reporting import Report, Warn
from simkit.storage.files import DamagedFileError
from simkit.storage.manifest import versions
from simkit.storage.run_directory import UnfinishedError

SECONDS_TO_CONNECT = 10
# A worker that was started together with the sweep imports Python packages first.
SECONDS_FOR_WORKERS = 30


@dataclasses.dataclass(frozen=True)
class DaskCluster:
    """The workers of a Dask scheduler. Dask sends a path and a few numbers, pickled, so the cluster must be trusted.

    A task whose worker dies is given to another one. A task that takes too long is also given to another one, and the
    first result counts; both write the same bytes.

    Attributes:
        client: client connected to the scheduler.
        deadline: seconds after which a chunk is also given to another worker.
        shares_memory: false, since workers may run on different machines.
        in_this_process: false.
    """

    client: Any
    deadline: float
    shares_memory: bool = False
    in_this_process: bool = False

    @classmethod
    def at(cls, scheduler: str, deadline: float) -> "DaskCluster":
        """Return the cluster of a scheduler.

        Args:
            scheduler: address, such as ``tcp://host:8786``, or path of the scheduler file
                (``dask scheduler --scheduler-file``).
            deadline: seconds after which a chunk is also given to another worker.

        Raises:
            UserError: if Dask is not installed, no scheduler answers, or it has no workers for `SECONDS_FOR_WORKERS`.
        """
        distributed = package("distributed", "a Dask cluster", "simkit-physics[dask]")
        try:
            address = scheduler if "://" in scheduler else json.loads(Path(scheduler).read_text())["address"]
            # A client that cannot be made is not closed in an orderly way.
            distributed.comm.get_address_host_port(address)
        except (OSError, TypeError, ValueError, KeyError, RecursionError):
            wanted = "neither an address such as tcp://host:8786 nor a scheduler file; give one of them"
            raise UserError(f"scheduler = {scheduler!r:.80} is {wanted}") from None
        try:
            _check_listening(address)
            client = distributed.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as error:  # tornado, asyncio and Dask raise many types of errors
            reason = one_line(error) or type(error).__name__
            raise UserError(f"no Dask scheduler answers at {scheduler} ({reason}); start one") from None
        try:
            client.wait_for_workers(1, timeout=SECONDS_FOR_WORKERS)
        except OSError:  # also Dask's TimeoutError
            client.close()
            raise UserError(
                f"the Dask scheduler at {scheduler} has had no workers for {SECONDS_FOR_WORKERS} s; start some with: "
                f"dask worker {address}"
            ) from None
        return cls(client, deadline)

    @property
    def concurrency(self) -> int:
        """Current number of workers."""
        return max(len(self.client.scheduler_info(n_workers=-1)["workers"]), 1)

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
        """Compute chunks, see `simkit.jobs.executors.executor.Executor.run`.

        Raises:
            UnfinishedError: if the scheduler is lost, or as for `Tries.record_failure`.
        """
        directory, tally = chunks.run_directory, Tally(chunks, indices, report)
        tries = Tries(directory.path, warn)
        own, missing = versions(), set(indices)
        tasks: dict[Any, tuple[int, float]] = {}
        waits = False

        def submit(index: int) -> None:
            arguments = (str(directory.path.resolve()), directory.identity, index, tries.parts(index), own)
            # Dask would return the result of the failed task for a pure task with the same arguments.
            tasks[self.client.submit(_chunk, *arguments, pure=False)] = index, time.monotonic()

        try:
            for index in indices:
                submit(index)
            while missing:
                for task in _finished(tasks):
                    index, _ = tasks.pop(task)
                    if index not in missing:
                        continue
                    try:
                        if refusal := task.result():
                            raise UserError(refusal)
                        arrays = chunks.read(index)
                    except UserError:
                        raise
                    except DamagedFileError as error:
                        tries.record_failure(index, f"{error}; is {directory.path} the same folder for every worker?")
                        submit(index)
                        continue
                    except CancelledError:  # this process cancels no task before the end
                        raise _lost(directory.path) from None
                    except Exception as error:  # the death of a worker, or a defect of simkit
                        tries.record_failure(index, f"its worker failed: {one_line(error)}")
                        submit(index)
                        continue
                    missing.remove(index)
                    tally.update(index, 1.0)
                    yield index, arrays
                now = time.monotonic()
                try:
                    by_worker = self.client.processing() if tasks else {}
                except OSError:
                    raise _lost(directory.path) from None
                if tasks and not by_worker and not waits:
                    warn("the Dask cluster has no workers; the sweep continues when it has one")
                waits = bool(tasks) and not by_worker
                running = {key for keys in by_worker.values() for key in keys}
                for task, (index, began) in list(tasks.items()):
                    if task.key not in running:
                        tasks[task] = index, now  # queued until a worker is free
                    elif now - began > self.deadline and index in missing:
                        tries.record_failure(index, f"its worker took more than {self.deadline:g} s")
                        tasks[task] = index, float("inf")
                        submit(index)
        finally:
            if self.client.status == "running":
                self.client.cancel(list(tasks), force=True)


def _finished(tasks: Iterable[Any]) -> list[Any]:
    """Return the finished tasks, waiting up to a second for one."""
    end = time.monotonic() + 1.0
    while not (done := [task for task in tasks if task.done()]) and time.monotonic() < end:
        time.sleep(0.02)
    return done


def _lost(folder: Path) -> UnfinishedError:
    return UnfinishedError(
        "the Dask scheduler no longer answers; start one with workers and pass it, or no scheduler, to", folder
    )


def _check_listening(scheduler: str) -> None:
    """Fail at once for an address without a listening scheduler; Dask itself would retry until its timeout."""
    host, port = urlsplit(scheduler).hostname, urlsplit(scheduler).port
    if host and port:
        socket.create_connection((host, port), timeout=SECONDS_TO_CONNECT).close()


def _chunk(folder: str, identity: str, index: int, parts: int, theirs: Mapping[str, str]) -> str:
    """Compute a chunk on a worker; return the message of a `UserError`, or an empty string."""

    def ignore(*words: Any) -> None:
        """Progress and warnings stay on the worker."""

    try:
        refuse_other_versions(theirs, versions(), "a Dask worker")
        compute(Path(folder), identity, index, parts, ignore, ignore, keeps_segments=False)
    except UserError as error:
        return str(error)
    return ""


@part(keys={"scheduler": text("address of a Dask scheduler, or path of its file"), "deadline": DEADLINE})
def scheduler(scheduler: str, deadline: float) -> DaskCluster:
    """Return the executor on the cluster of a scheduler; arguments and errors as for `DaskCluster.at`."""
    return DaskCluster.at(scheduler, deadline)
