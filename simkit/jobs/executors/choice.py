"""Choice of the executor from a user's arguments."""

import os
from typing import Any

from simkit.errors import UserError, argument
from simkit.jobs.executors.dask_cluster import DaskCluster
from simkit.jobs.executors.executor import Executor
from simkit.jobs.executors.in_this_process import IN_THIS_PROCESS
from simkit.jobs.executors.local_workers import LocalWorkers
from simkit.scenario import checks

# A segment takes seconds, and compilation of a large program minutes.
DEADLINE = 900.0
MOST_WORKERS = 1024


def executor_of(workers: Any = None, scheduler: Any = None, deadline: Any = None) -> Executor:
    """Return the executor of a sweep's chunks, by default this process.

    Args:
        workers: number of worker processes on this machine.
        scheduler: address of a Dask scheduler, or path of its file.
        deadline: seconds without progress after which a chunk is given to another worker.

    Raises:
        UserError: if the arguments exclude each other, or the scheduler does not answer.
    """
    workers, scheduler, deadline = (checks.unwrapped(value) for value in (workers, scheduler, deadline))
    if workers is not None and scheduler is not None:
        raise UserError(
            f"{argument('workers')} are processes of this machine and "
            f"{argument('scheduler')} is a Dask cluster; give one of them"
        )
    if workers is None and scheduler is None:
        if deadline is not None:
            raise UserError(
                f"{argument('deadline')} is for workers; give {argument('workers')} or {argument('scheduler')} as well"
            )
        return IN_THIS_PROCESS
    if deadline is None:
        deadline = DEADLINE
    deadline = checks.positive(deadline, "deadline")
    if workers is None:
        if not isinstance(scheduler, str | os.PathLike):
            raise UserError(f"scheduler = {scheduler!r:.60} is not an address; give for example 'tcp://host:8786'")
        return DaskCluster.at(str(scheduler), deadline)
    checks.integer(workers, "workers", 1, MOST_WORKERS)
    return LocalWorkers(workers, deadline)
