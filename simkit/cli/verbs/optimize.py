"""Minimize an objective (or maximize it, if that is its goal) over parameters within their bounds."""

import argparse
from functools import partial

from simkit.cli.arguments import (
    add_mode,
    add_no_render,
    add_output,
    add_picture,
    add_scenario,
    add_wrt,
    carry_out,
    check_pictures,
    names_of,
    output_of,
    scenario_of,
    size_of,
)
from simkit.core.compilation import use_compilation_cache
from simkit.core.optimizers.methods import METHODS, learning_rate_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser)
    add_wrt(parser)
    add_output(parser, "_optimize")
    add_picture(parser, animated=False)
    parser.add_argument(
        "--method",
        default="lbfgs",
        help=f"{', '.join(f'{name} for {use}' for name, use in METHODS.items())} (default: lbfgs)",
    )
    parser.add_argument("--iterations", type=int, default=50, help="maximum number of updates (default: 50)")
    parser.add_argument("--learning-rate", type=float, help="learning rate of adam (default: 0.1)")
    parser.add_argument("--starts", type=int, metavar="N", help="optimize from N starts between the bounds at once")
    add_mode(parser)
    add_no_render(parser)


def main(arguments: argparse.Namespace) -> int:
    """Optimize and report."""
    from simkit.jobs.derivatives import objective_name
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization, starts_of

    scenario = scenario_of(arguments)
    job = Optimization(
        scenario,
        tuple(names_of(arguments.wrt)),
        objective_name(scenario, arguments.objective),
        arguments.method,
        arguments.iterations,
        learning_rate_of(arguments.method, arguments.learning_rate),
        arguments.mode,
    ).checked()
    output = output_of(arguments, scenario.name)
    if arguments.starts is not None:
        options = {name: getattr(job, name) for name in ("method", "iterations", "learning_rate", "mode")}
        several = starts_of(scenario, job.wrt, job.objective, arguments.starts, **options)
        check_pictures(several, arguments)
        use_compilation_cache()
        return carry_out(several, output, arguments, None, partial(begin, several, output, arguments.overwrite))
    size = size_of(arguments)
    use_compilation_cache()
    work = partial(begin, job, output, arguments.overwrite)
    return carry_out(job, output, arguments, size, work)
