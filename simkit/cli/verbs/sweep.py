"""Run a scenario over parameter values and seeds, as one vmapped program in chunks that fit in memory."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from simkit.cli.arguments import add_no_render, add_output, add_scenario, add_workers, carry_out, changed_by, output_of
from simkit.cli.processes import use_every_core
from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import parse_over, parse_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser)
    add_output(parser, "_sweep")
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="low:high:count, low:high:count:log, or a,b,c; several make a grid; config.KEY=a,b,c compiles each",
    )
    parser.add_argument("--zip", action="store_true", help="pair the values of several --over, instead of a grid")
    parser.add_argument(
        "--sample",
        metavar="METHOD",
        help="sobol or latin_hypercube: fill --over NAME=low:high[:log] with points",
    )
    parser.add_argument("--members", type=int, metavar="N", help="points of a sample (a power of 2 for sobol)")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="read points from a .csv or .parquet file, one per row"
    )
    parser.add_argument("--seeds", type=int, default=1, help="number of random seeds per point (default: 1)")
    parser.add_argument(
        "--chunk",
        type=int,
        help="members per program (default: the most that fit and still speed up the sweep)",
    )
    parser.add_argument("--memory", help="memory limit of a program, such as 8GiB (default: 60 %% of the free memory)")
    add_workers(parser)
    add_no_render(parser, "draw no chart; draw it later with render")
    parser.add_argument("--no-frames", action="store_true", help="keep diagnostics only, not the final frames")
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="size",
        choices=("size", "time"),
        help="print members, chunks, compilations, memory and disk only; `--dry-run time` also times a segment",
    )


def main(arguments: argparse.Namespace) -> int:
    """Sweep and report."""
    scenario = find_scenario(arguments.scenario)
    use_every_core(arguments)
    scenario = changed_by(arguments, scenario)
    over: dict[str, tuple[Any, ...]] = {}
    for text in arguments.over:
        name, values = parse_over(scenario, text, zipped=arguments.zip, sampled=arguments.sample is not None)
        if name in over:
            raise UserError(f"--over {name} is given twice; keep one of them")
        over[name] = values
    if not over and arguments.seeds < 2 and arguments.table is None and arguments.sample is None:
        raise UserError("nothing to sweep; give --over name=low:high:count, --table, or --seeds with at least 2")
    from simkit.jobs.executors.choice import executor_of
    from simkit.jobs.job import begin
    from simkit.jobs.sweep_functions import planned

    use_compilation_cache()
    output = output_of(arguments, scenario.name)
    executor = executor_of(arguments.workers, arguments.scheduler, arguments.deadline, arguments.executor)
    job = planned(
        scenario,
        over,
        zip=arguments.zip,
        sample=arguments.sample,
        members=arguments.members,
        table=arguments.table,
        seeds=arguments.seeds,
        chunk=arguments.chunk,
        final_frames=not arguments.no_frames,
        memory=arguments.memory,
        executor=executor,
        overrides=parse_settings(arguments.set),
    )
    if arguments.dry_run:
        from simkit.cli.reports import sweep

        return sweep.main(job, output, arguments)
    return carry_out(job, output, arguments, None, partial(begin, job, output, arguments.overwrite))
