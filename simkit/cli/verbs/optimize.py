"""Choose parameters, within their bounds, so that an objective is smallest (or largest, if that is its goal)."""

import argparse
from functools import partial

from simkit.cli.arguments import (
    add_mode,
    add_output,
    add_picture,
    add_scenario,
    add_wrt,
    names_of,
    output_of,
    scenario_of,
)
from simkit.cli.work import carry_out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)
    add_wrt(parser)
    add_output(parser, "_optimize")
    add_picture(parser)
    parser.add_argument(
        "--method",
        default="lbfgs",
        choices=("lbfgs", "adam"),
        help="lbfgs for smooth objectives, adam for noisy ones (default: lbfgs)",
    )
    parser.add_argument("--iterations", type=int, default=50, help="at most this many updates (default: 50)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of adam (default: 0.1)")
    parser.add_argument("--starts", type=int, metavar="N", help="begin at N places between the bounds, all at once")
    add_mode(parser)
    parser.add_argument("--no-render", action="store_true", help="draw nothing")


def main(arguments: argparse.Namespace) -> int:
    """Optimize and report."""
    from simkit.core.compilation import use_compilation_cache
    from simkit.jobs.derivatives import objective_name
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization
    from simkit.jobs.starts import starts_of
    from simkit.render.animate import parse_size

    scenario = scenario_of(arguments)
    size = parse_size(arguments.size)
    job = Optimization(
        scenario,
        tuple(names_of(arguments.wrt)),
        objective_name(scenario, arguments.objective),
        arguments.method,
        arguments.iterations,
        arguments.learning_rate,
        arguments.mode,
    ).checked()
    use_compilation_cache()
    output = output_of(arguments, scenario.name)
    if arguments.starts is not None:
        asked = {name: getattr(job, name) for name in ("method", "iterations", "learning_rate", "mode")}
        several = starts_of(scenario, job.wrt, job.objective, arguments.starts, **asked)
        return carry_out(several, output, arguments, None, partial(begin, several, output, arguments.overwrite))
    work = partial(begin, job, output, arguments.overwrite)
    return carry_out(job, output, arguments, None if arguments.no_render else size, work)
