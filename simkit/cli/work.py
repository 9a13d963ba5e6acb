"""Jobs on the command line: run with progress and an orderly stop, then reported."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import given_of
from simkit.cli.interrupt import resumable
from simkit.cli.progress import Progress
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.jobs.callbacks import Report
    from simkit.jobs.job import Job
    from simkit.render.figure import Size


def check_pictures(job: "Job[Any]", arguments: argparse.Namespace) -> None:
    """Refuse options of pictures that the report of a job does not support.

    Args:
        job: the job to resume.
        arguments: arguments of the command line.

    Raises:
        UserError: naming the option.
    """
    supported = _report_of(job).PICTURES
    if given := given_of(arguments, [name for name in ("format", "size", "no_render") if name not in supported]):
        raise UserError(f"{given} is not for {job.noun}, whose charts are PNG files; leave it out")


def carry_out(
    job: "Job[Any]",
    folder: Path,
    arguments: argparse.Namespace,
    size: "Size | None",
    work: "Callable[[Report], Any]",
) -> int:
    """Run a job and report it, by ``finish`` of the report module of its kind.

    Args:
        job: the job.
        folder: its run directory.
        arguments: arguments of the command line, with ``json``.
        size: size of pictures; ``None`` draws none.
        work: function that runs the job, given a progress callback, and returns its result.

    Returns:
        The exit code.
    """
    with resumable(folder):
        with Progress(job.scenario.name, **job.progress) as progress:
            result = work(progress.update)
        return _report_of(job).finish(result, job, folder, arguments, size)


def _report_of(job: "Job[Any]") -> Any:
    """Return the module that reports jobs of a kind."""
    return importlib.import_module(f"simkit.cli.reports.{job.report}")
