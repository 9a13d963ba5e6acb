"""A Dask cluster whose workers compute chunks of a sweep and write them into a folder that all of them see."""

import dataclasses
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from simkit.errors import UserError, one_line
from simkit.jobs.executors.executor import Tally, Tries
from simkit.jobs.executors.worker import compute, refuse_other_versions
from simkit.storage.files import DamagedFileError
from simkit.storage.software import versions

if TYPE_CHECKING:
    from simkit.jobs.callbacks import Report, Warn
    from simkit.jobs.chunks import Chunks

MISSING = "a Dask cluster needs the package distributed; install it with: pip install 'simkit[dask]'"
SECONDS_TO_CONNECT = 10


@dataclasses.dataclass(frozen=True)
class DaskCluster:
    """The workers of a Dask scheduler. What Dask moves is a path and a few numbers, pickled, so it must be trusted.

    A task whose worker dies goes to another one; so does one that takes too long, and the first result counts: both
    write the same bytes.

    Attributes:
        client: connected to the scheduler.
        deadline: seconds after which a chunk is given to another worker as well.
        shares_memory: false, as if each ran on a machine of its own.
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
            scheduler: its address, such as ``tcp://host:8786``, or the path of the file that it wrote
                (``dask scheduler --scheduler-file``).
            deadline: as above.

        Raises:
            UserError: if Dask is not installed, no scheduler answers, or it has no workers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise UserError(MISSING) from None
        where: dict[str, Any] = {"address": scheduler} if "://" in scheduler else {"scheduler_file": scheduler}
        if "scheduler_file" in where and not Path(scheduler).is_file():
            raise UserError(f"scheduler = {scheduler!r:.80} is neither an address such as tcp://host:8786 nor a file")
        try:
            if "address" in where:
                _check_reached(scheduler)
            client = Client(**where, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as error:  # tornado, asyncio and Dask raise many kinds
            raise UserError(f"no Dask scheduler answers at {scheduler} ({one_line(error)}); start one") from None
        if not client.scheduler_info(n_workers=-1)["workers"]:
            client.close()
            raise UserError(
                f"the Dask scheduler at {scheduler} has no workers; start some with: dask worker {scheduler}"
            )
        return cls(client, deadline)

    @property
    def places(self) -> int:
        """How many workers there are now."""
        return max(len(self.client.scheduler_info(n_workers=-1)["workers"]), 1)

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Compute chunks, see `simkit.jobs.executors.executor.Executor.run`."""
        directory, tally = chunks.home, Tally(chunks, indices, report)
        tries = Tries(directory.path, warn)
        own, missing = versions(), set(indices)
        tasks: dict[Any, tuple[int, float]] = {}

        def submit(index: int) -> None:
            asked = (str(directory.path.resolve()), directory.identity, index, tries.parts(index), own)
            # Pure tasks of the same arguments would be taken for the one that failed.
            tasks[self.client.submit(_chunk, *asked, pure=False)] = index, time.monotonic()

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
                        tries.failed(index, f"{error}; is {directory.path} the same folder for every worker?")
                        submit(index)
                        continue
                    except Exception as error:  # what killed a worker, or a mistake of ours
                        tries.failed(index, f"its worker failed: {one_line(error)}")
                        submit(index)
                        continue
                    missing.remove(index)
                    tally.tell(index, 1.0)
                    yield index, arrays
                now = time.monotonic()
                running = {key for keys in self.client.processing().values() for key in keys} if tasks else set()
                for task, (index, began) in list(tasks.items()):
                    if task.key not in running:
                        tasks[task] = index, now  # it waits for a worker
                    elif now - began > self.deadline and index in missing:
                        tries.failed(index, f"its worker took more than {self.deadline:g} s")
                        tasks[task] = index, float("inf")
                        submit(index)
        finally:
            self.client.cancel(list(tasks), force=True)


def _finished(tasks: Iterable[Any]) -> list[Any]:
    """Return the tasks that have ended, or none after a second."""
    end = time.monotonic() + 1.0
    while not (done := [task for task in tasks if task.done()]) and time.monotonic() < end:
        time.sleep(0.02)
    return done


def _check_reached(scheduler: str) -> None:
    """Refuse an address that nothing listens at, at once; Dask itself would try again until its time is over."""
    host, port = urlsplit(scheduler).hostname, urlsplit(scheduler).port
    if host and port:
        socket.create_connection((host, port), timeout=SECONDS_TO_CONNECT).close()


def _chunk(folder: str, identity: str, index: int, parts: int, theirs: Mapping[str, str]) -> str:
    """Compute a chunk on a worker; return why a user must mend something, or nothing."""

    def ignore(*words: Any) -> None:
        """Progress and warnings stay on the worker."""

    try:
        refuse_other_versions(theirs, versions(), "a Dask worker")
        compute(Path(folder), identity, index, parts, ignore, ignore, keeps_segments=False)
    except UserError as error:
        return str(error)
    return ""
