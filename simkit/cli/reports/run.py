"""Report of a run."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.core.status import BROKEN, Status

if TYPE_CHECKING:
    from simkit.jobs.runs import Outcome, Run
    from simkit.render.page import Size

# Supported options of pictures.
PICTURES = ("format", "size", "no_render")


def finish(outcome: "Outcome", job: "Run", folder: Path, arguments: argparse.Namespace, size: "Size | None") -> int:
    """Draw and report a run.

    Args:
        outcome: outcome of the run.
        job: the run.
        folder: its run directory.
        arguments: arguments with ``format`` and ``json``.
        size: size of the picture; ``None`` draws none.
    """
    status = Status(int(outcome.status))
    picture = None
    if size and status not in BROKEN:
        from simkit.export.pictures import draw

        file = folder / f"{job.scenario.name}.{arguments.format}"
        with Progress(job.scenario.name, doing="drawing", phase="drew") as progress:
            picture = draw(outcome, file, arguments.format, size, report=lambda done: progress.update(done, "drawing"))
    if arguments.json:
        result = {
            "scenario": job.scenario.name,
            "status": status.name.lower(),
            "message": outcome.message,
            "diagnostics": outcome.diagnostics,
            "directory": folder,
            "picture": picture,
        }
        print_json(result, "run")
    else:
        if not outcome.failed:
            print(outcome.message + "\n")
        units = {name: each["unit"] for name, each in outcome.labels.get("quantities", {}).items()}
        rows = [(name, value, units.get(name, "")) for name, value in outcome.diagnostics.items()]
        print_table(("diagnostic", "final value", "unit"), rows)
        print(f"\nrun:       {folder}")
        if picture:
            print(f"{'animation' if arguments.format != 'png' else 'picture'}: {picture}")
    if outcome.failed:
        print(f"simkit: {outcome.message}", file=sys.stderr)
        return FAILED
    return FINE
