"""Run a scenario and render its animation."""

import argparse
from functools import partial

from simkit.cli.arguments import (
    add_no_render,
    add_output,
    add_picture,
    add_scenario,
    carry_out,
    output_of,
    scenario_of,
    size_of,
)
from simkit.cli.processes import add_processes, follow, group_of, resuming, together
from simkit.core.compilation import use_compilation_cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser)
    add_output(parser)
    add_picture(parser)
    add_processes(parser)
    add_no_render(parser, "store frames only; draw them later with render")


def main(arguments: argparse.Namespace) -> int:
    """Run and report."""
    group = group_of(arguments)
    from simkit.jobs.job import begin
    from simkit.jobs.runs import Run

    job = Run(scenario_of(arguments), group)
    size = size_of(arguments)
    if size:
        from simkit.render.color import check_scenario

        check_scenario(job.scenario)
    output = output_of(arguments, job.scenario.name)
    use_compilation_cache()
    if group and not group.is_first:
        return follow(job.follow, group)
    work = partial(begin, job, output, arguments.overwrite)
    work = together(group, resuming(output), work) if group else work
    return carry_out(job, output, arguments, size, work)
