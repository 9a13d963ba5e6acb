"""Finish an interrupted run, sweep, optimization or derivative, without repeating stored work."""

import argparse
import os
import warnings
from functools import partial

from simkit.cli.arguments import add_no_render, add_picture, add_workers, carry_out, check_pictures, size_of
from simkit.cli.processes import add_processes, follow, group_of, resuming, run_of, together, use_every_core
from simkit.core.compilation import use_compilation_cache
from simkit.storage.kinds import kind_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    add_picture(parser)
    add_workers(parser)
    add_processes(parser)
    add_no_render(parser)


def main(arguments: argparse.Namespace) -> int:
    """Resume, and report like the verb that began the job."""
    group = group_of(arguments)
    from simkit.jobs.job import proceed
    from simkit.jobs.runs import Run
    from simkit.jobs.stored_jobs import with_executor
    from simkit.render.video import remove_abandoned
    from simkit.storage.run_directory import RunDirectory

    directory = RunDirectory.open(arguments.run)
    if directory.kind in ("sweep", "config_sweep"):
        use_every_core(arguments)
    job = kind_of(directory.kind).of(directory)
    check_pictures(job, arguments)
    size = size_of(arguments)
    job = run_of(
        with_executor(job, arguments.workers, arguments.scheduler, arguments.deadline, arguments.executor), group
    )
    use_compilation_cache()
    if group and not group.is_first:
        assert isinstance(job, Run)  # see `run_of`
        return follow(job.follow, group)
    remove_abandoned(directory.path)

    if size and not os.access(directory.path, os.W_OK):
        elsewhere = "; draw elsewhere with render --output" if job.has_frames else ""
        warnings.warn(f"{directory.path} cannot be written, so nothing is drawn{elsewhere}", stacklevel=1)
        size = None
    work = partial(proceed, job, directory, warnings.warn)
    work = together(group, resuming(directory.path), work) if group else work
    return carry_out(job, directory.path, arguments, size, work)
