"""Merge finished sweeps of one scenario and settings, with different points or seeds, into one sweep."""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.arguments import carry_out

if TYPE_CHECKING:
    import xarray

    from simkit.jobs.reporting import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="run directories of sweeps, at least two")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing run directory")


def main(arguments: argparse.Namespace) -> int:
    """Merge, and report like a sweep."""
    from simkit.jobs.sweep_functions import merged, sweeps_in
    from simkit.jobs.sweeps import Sweep

    opened = sweeps_in(arguments.sweeps)

    def work(report: "Report") -> "xarray.Dataset":
        return merged(opened, arguments.output, overwrite=arguments.overwrite, warn=warnings.warn, report=report)

    return carry_out(Sweep.of(opened[0]), arguments.output, arguments, None, work)
