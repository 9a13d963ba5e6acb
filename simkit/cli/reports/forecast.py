"""Report of a sweep's resource forecast."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.main import FINE
from simkit.cli.output import print_json

if TYPE_CHECKING:
    from simkit.jobs.sweeps import Sweep


def main(job: "Sweep", output: Path, arguments: argparse.Namespace) -> int:
    """Print members, chunks, compilations, memory, disk and, if timed, time.

    Args:
        job: the sweep.
        output: run directory to write.
        arguments: arguments with ``dry_run``, ``overwrite`` and ``json``.

    Returns:
        The exit code.
    """
    from simkit.engine.memory import format_bytes
    from simkit.jobs.forecasts import forecast
    from simkit.storage.run_directory import check_output

    if arguments.output is not None:  # a folder named after the scenario may hold an earlier sweep
        check_output(output, overwrite=arguments.overwrite)
    found = forecast(job, output, timed=arguments.dry_run == "time")
    if arguments.json:
        print_json({"scenario": job.scenario.name, "directory": output} | dataclasses.asdict(found))
        return FINE
    least = "" if found.is_exact else "at least "
    chunks = f"{found.chunks} of {found.chunk} members"
    if found.may_end_early:
        chunks = f"{found.chunks} with {found.chunk} lanes"
    elif not found.is_exact and job.chunk is None:
        chunks += ", if the compiled program fits in memory"
    print(f"members:       {found.members}")
    print(f"chunks:        {chunks}")
    print(f"compilations:  {found.compilations}")
    print(f"memory:        {least}{format_bytes(found.memory)}")
    print(f"disk:          {format_bytes(found.disk)}")
    if found.seconds is not None:
        most = "at most " if found.may_end_early else "about "
        print(f"time:          {most}{_duration(found.seconds)}, after compiling")
    else:
        print("time:          (compile, and time one segment, with --dry-run time)")
    return FINE


def _duration(seconds: float) -> str:
    """Return a duration as text, such as ``"2 h 5 min"``."""
    if seconds < 60:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
