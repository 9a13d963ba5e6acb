"""Show the progress and failures of a stored job, while it runs in another shell or after an interruption."""

import argparse
import dataclasses

from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.cli.progress import clock
from simkit.cli.reports.sweep import print_totals

MOST_LINES = 20
# States of a job that a command resumes.
RESUMABLE = ("interrupted", "damaged")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", help="the run directory")


def main(arguments: argparse.Namespace) -> int:
    """Read the run directory and report, without writing."""
    from simkit.jobs.stored_jobs import progress_of

    found = progress_of(arguments.run)
    if arguments.json:
        resuming = found.resuming if found.state in RESUMABLE else None
        print_json(dataclasses.asdict(found) | {"folder": str(found.folder), "resuming": resuming})
        return FINE
    print(f"{found.kind} of {found.scenario} in {found.folder}")
    print(f"state:      {found.state}")
    print(f"done:       {100 * found.fraction:.0f} % ({found.words})")
    print(f"failed:     {found.failures or 'none'}")
    for line in found.failed[:MOST_LINES]:
        print(f"            {line}")
    if found.failures > MOST_LINES:
        print(f"            ... and {found.failures - MOST_LINES} more")
    print_totals(found.totals)
    if found.seconds_left is not None:
        print(f"time left:  about {clock(found.seconds_left)}")
    if found.state in RESUMABLE:
        print(f"resume with: {found.resuming}")
    return FINE
