"""Run a scenario and render its animation."""

import argparse

from simkit.cli.arguments import add_output, add_picture, add_scenario, output_of, scenario_of
from simkit.cli.interrupt import resumable
from simkit.cli.progress import Progress
from simkit.cli.reports.run import finish_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)
    add_output(parser)
    add_picture(parser)
    parser.add_argument("--no-render", action="store_true", help="store frames only; draw them later with render")


def main(arguments: argparse.Namespace) -> int:
    """Run and report."""
    from simkit.engine.compilation_cache import use_compilation_cache
    from simkit.jobs.runs import start
    from simkit.render.animate import parse_size

    scenario = scenario_of(arguments)
    size = parse_size(arguments.size)
    output = output_of(arguments, scenario.name)
    use_compilation_cache()
    with resumable(output):
        with Progress(scenario.name, scenario.run.steps) as progress:
            outcome = start(
                scenario,
                output,
                overwrite=arguments.overwrite,
                report=lambda piece, total: progress.update(piece.index / total),
            )
        return finish_run(outcome, arguments, None if arguments.no_render else size)
