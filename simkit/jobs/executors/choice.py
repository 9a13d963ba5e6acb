"""Executors of chunks by name: each declares its keys beside the class that computes.

A package adds one by an entry point of the group ``simkit.executors``: a function of its keys, declared by
`simkit.core.parts.part`, that returns a `simkit.jobs.executors.executor.Executor`.
"""

import os
from typing import Any

from simkit.core.parts import Choice, PartTable, table_of
from simkit.core.settings import unwrapped
from simkit.jobs.executors.executor import Executor
from simkit.plugins import Registry

EXECUTORS = Registry(
    "executor",
    {
        "in_this_process": "simkit.jobs.executors.in_this_process:in_this_process",
        "scheduler": "simkit.jobs.executors.dask_cluster:scheduler",
        "workers": "simkit.jobs.executors.local_workers:workers",
    },
)
CHOICE = Choice(EXECUTORS, "executor", "what computes the chunks of a sweep", default="in_this_process")


def executor_of(workers: Any = None, scheduler: Any = None, deadline: Any = None, executor: Any = None) -> Executor:
    """Return the executor of a sweep's chunks, by default this process.

    Args:
        workers: number of worker processes on this machine.
        scheduler: address of a Dask scheduler, or path of its file.
        deadline: seconds without progress after which a chunk is given to another worker.
        executor: name of an executor, with its options after a colon: ``"cluster:queue=short"``.

    Raises:
        UserError: if the arguments exclude each other, or the scheduler does not answer.
    """
    options = {"workers": workers, "scheduler": scheduler, "deadline": deadline}
    chosen = {key: unwrapped(value, key) for key, value in options.items() if value is not None}
    if isinstance(chosen.get("scheduler"), os.PathLike):
        chosen["scheduler"] = os.fspath(chosen["scheduler"])
    table = chosen | (table_of(str(executor), "executor") if executor is not None else {})
    return CHOICE.make(PartTable((CHOICE,), {}).read(table, ""))
