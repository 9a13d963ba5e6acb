"""Runs of several processes on the command line: their options, and how each of them ends."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.engine.processes import ProcessGroup
    from simkit.jobs.job import Job, Report

OPTIONS = ("processes", "process_id", "coordinator")


def add_processes(parser: argparse.ArgumentParser) -> None:
    """Add which of several processes this is."""
    parser.add_argument(
        "--processes", type=int, metavar="N", help="run as one of N processes, also on several hosts (see launch)"
    )
    parser.add_argument("--process-id", type=int, metavar="I", help="which of them this is, from 0, which stores")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 listens for the others")


def group_of(arguments: argparse.Namespace) -> "ProcessGroup | None":
    """Return the group of processes that this one belongs to, once all are there; None if it is the only one.

    Raises:
        UserError: if an option is missing, or the others do not come.
    """
    given = {name: getattr(arguments, name) for name in OPTIONS}
    if all(value is None for value in given.values()):
        return None
    for name, value in given.items():
        if value is None:
            raise UserError(
                f"--{name.replace('_', '-')} is missing; several processes need all of "
                "--processes N --process-id I --coordinator HOST:PORT"
            )
    # Read when JAX is imported; without it the compiler writes of each transform that it does not divide.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from simkit.engine.processes import ProcessGroup

    return ProcessGroup.joined(given["processes"], given["process_id"], given["coordinator"])


def run_of(job: "Job[Any]", group: "ProcessGroup | None") -> "Job[Any]":
    """Return a job as one that a group of processes does together.

    Raises:
        UserError: if there is a group, and the job is not a run.
    """
    import dataclasses

    from simkit.jobs.runs import Run

    if group is None:
        return job
    if not isinstance(job, Run):
        raise UserError(f"processes= divides the fields of a run, and this is {job.noun}; leave it out")
    return dataclasses.replace(job, group=group)


def together(group: "ProcessGroup", folder: Path, work: "Callable[[Report], Any]") -> "Callable[[Report], Any]":
    """Return the work of the first process of a group, which leaves the group when it is done or has failed.

    Args:
        group: of the processes.
        folder: the run directory.
        work: does the job, told where to report; returns its result.
    """

    def done(report: "Report") -> Any:
        import jax

        try:
            result = work(report)
        except jax.errors.JaxRuntimeError as error:
            _end_if_lost(error, f"go on with: simkit resume {shlex.quote(str(folder))}")
            raise
        except BaseException:
            group.leave()
            raise
        group.leave()
        return result

    return done


def follow(job: "Job[Any]", group: "ProcessGroup") -> int:
    """Do the part of another process than the first, which prints and stores nothing.

    Args:
        job: what is run.
        group: of the processes.

    Returns:
        The exit code.
    """
    import jax

    from simkit.cli.main import FINE
    from simkit.engine.processes import DismissedError
    from simkit.jobs.runs import Run

    assert isinstance(job, Run)  # as `run_of` checks
    try:
        job.follow()
    except DismissedError:
        pass
    except jax.errors.JaxRuntimeError as error:
        _end_if_lost(error, "process 0 tells how to go on")
        raise
    except UserError:  # which the first process meets, too
        group.leave()
        raise
    group.leave()
    return FINE


def _end_if_lost(error: Exception, remedy: str) -> None:
    """End this process in one line if another one is lost: leaving such a group aborts with a page of text."""
    from simkit.cli.main import FAILED

    if any(word in str(error) for word in ("Gloo", "gloo", "UNAVAILABLE", "onnection", "heartbeat")):
        print(f"simkit: another process of the group was lost; {remedy}", file=sys.stderr, flush=True)
        os._exit(FAILED)
