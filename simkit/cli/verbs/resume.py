"""Finish an interrupted run, sweep or optimization; what is stored is not computed again."""

import argparse
import os
import sys

from simkit.cli.arguments import add_picture
from simkit.cli.interrupt import resumable
from simkit.cli.progress import Progress
from simkit.cli.reports.optimization import finish_optimization
from simkit.cli.reports.run import finish_run
from simkit.cli.reports.sweep import finish_sweep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    add_picture(parser)
    parser.add_argument("--no-render", action="store_true", help="draw nothing")


def main(arguments: argparse.Namespace) -> int:
    """Resume and report like the verb that began the work."""
    from simkit.engine.compilation_cache import use_compilation_cache
    from simkit.jobs.optimizations import proceed_optimization, request_of
    from simkit.jobs.runs import proceed
    from simkit.jobs.sweeps import proceed_sweep
    from simkit.render.animate import parse_size
    from simkit.render.files import remove_abandoned
    from simkit.storage.run_directory import RunDirectory

    size = None if arguments.no_render else parse_size(arguments.size)
    directory = RunDirectory.open(arguments.run)
    scenario = directory.scenario()
    remove_abandoned(directory.path)
    use_compilation_cache()

    def warn(message: str) -> None:
        print(f"simkit: warning: {message}", file=sys.stderr)

    if not os.access(directory.path, os.W_OK):
        if size and directory.kind != "sweep":
            warn(f"{directory.path} cannot be written, so nothing is drawn; draw elsewhere with render --output")
        size = None
    with resumable(directory.path):
        if directory.kind == "sweep":
            with Progress(scenario.name) as progress:
                result = proceed_sweep(directory, report=progress.update, warn=warn)
            return finish_sweep(result, directory.path, scenario, arguments)
        if directory.kind == "optimize":
            request = request_of(directory)
            with Progress(scenario.name, request.iterations, "iterations", may_end_early=True) as progress:
                outcome = proceed_optimization(
                    directory, report=lambda piece, total: progress.update(piece.index / total), warn=warn
                )
            return finish_optimization(outcome, request, arguments, size)
        with Progress(scenario.name, scenario.run.steps) as progress:
            outcome = proceed(directory, report=lambda piece, total: progress.update(piece.index / total), warn=warn)
        return finish_run(outcome, arguments, size)
