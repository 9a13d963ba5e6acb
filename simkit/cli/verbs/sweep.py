"""Run a scenario over parameter values and seeds, as one vmapped program in chunks that fit in memory."""

import argparse
from functools import partial

from simkit.cli.arguments import add_output, add_scenario, output_of, scenario_of
from simkit.cli.work import carry_out
from simkit.errors import UserError
from simkit.scenario.overrides import parse_over


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)
    add_output(parser, "_sweep")
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="low:high:count, low:high:count:log, or a,b,c; several make a grid",
    )
    parser.add_argument("--seeds", type=int, default=1, help="random seeds per grid point (default: 1)")
    parser.add_argument(
        "--chunk", type=int, help="members per program (default: as many as fit in memory and still speed it up)"
    )
    parser.add_argument("--memory", help="how much a program may take, such as 8GiB (default: 60 %% of what is free)")
    parser.add_argument("--no-frames", action="store_true", help="keep diagnostics only, not the final frames")


def main(arguments: argparse.Namespace) -> int:
    """Sweep and report."""
    scenario = scenario_of(arguments)
    over: dict[str, tuple[float, ...]] = {}
    for text in arguments.over:
        name, values = parse_over(scenario, text)
        if name in over:
            raise UserError(f"--over {name} is given twice; keep one of them")
        over[name] = values
    if not over and arguments.seeds < 2:
        raise UserError("nothing to sweep; give --over name=low:high:count, or --seeds with at least 2")
    from simkit.core.compilation import use_compilation_cache
    from simkit.engine.memory import parse_size
    from simkit.jobs.job import begin
    from simkit.jobs.sweeps import Sweep

    use_compilation_cache()
    output = output_of(arguments, scenario.name)
    memory = parse_size(arguments.memory) if arguments.memory else None
    job = Sweep(scenario, over, arguments.seeds, arguments.chunk, not arguments.no_frames, memory)
    return carry_out(job, output, arguments, None, partial(begin, job, output, arguments.overwrite))
