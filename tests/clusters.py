"""A Dask scheduler and its workers as processes, which tests can kill."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self


class Cluster:
    """A scheduler, and workers that are added to it; all end with the block ``with Cluster(folder) as cluster:``.

    Attributes:
        place: scheduler file.
        scheduler: process of the scheduler.
        workers: processes of the workers, each with one thread and without a parent that would replace it.
    """

    def __init__(self, folder: Path, workers: int = 0) -> None:
        self.place = folder / "scheduler.json"
        self.scheduler = self._started("scheduler", "--port", "0")
        until = time.monotonic() + 60
        while not self.place.is_file() and time.monotonic() < until:
            time.sleep(0.05)
        self.workers: list[subprocess.Popen] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start one more worker."""
        self.workers.append(self._started("worker", "--nthreads", "1", "--no-nanny"))

    def _started(self, *words: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(self.place), "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: Any) -> None:
        for process in [self.scheduler, *self.workers]:
            process.kill()
            process.wait()
