"""Verbs that begin work: run, sweep, grad and optimize."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from simkit.cli.arguments import (
    add_device,
    add_mode,
    add_no_render,
    add_output,
    add_picture,
    add_report,
    add_scenario,
    add_workers,
    add_wrt,
    carry_out,
    changed_by,
    check_pictures,
    exclude,
    names_of,
    on_device,
    output_of,
    pictures_of,
    scenario_of,
    size_of,
)
from simkit.cli.processes import add_processes, follow, group_of, resuming, together, use_every_core
from simkit.cli.progress import Progress
from simkit.core.compilation import use_compilation_cache
from simkit.core.optimizers.methods import METHODS
from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import parse_over, parse_settings


class Run:
    """Run a scenario and render its animation."""

    EXAMPLES = (
        "simkit run bouncing_ball",
        "simkit run bouncing_ball --set restitution=0.9 -o runs/lively --format png --report",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser)
        add_device(parser)
        add_output(parser)
        add_picture(parser)
        add_processes(parser)
        add_no_render(parser, "store frames only; draw them later with render")
        add_report(parser)

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Run and report."""
        group = group_of(arguments)
        from simkit.jobs.job import begin
        from simkit.jobs.runs import Run

        job = Run(scenario_of(arguments), group, pictures=pictures_of(arguments))
        size, checks = size_of(arguments), {}
        if size:
            from simkit.export.pictures import check_window
            from simkit.render.color import check_scenario

            check_scenario(job.scenario)
            checks["examine"] = partial(check_window, job.scenario)
        output = output_of(arguments, job.scenario.name)
        use_compilation_cache()
        if group and not group.is_first:
            return follow(job.follow, group)
        work = partial(begin, job, output, arguments.overwrite, **checks)
        work = together(group, resuming(output), work) if group else work
        return carry_out(job, output, arguments, size, work)


class Sweep:
    """Run a scenario over parameter values and seeds, as one vmapped program in chunks that fit in memory."""

    EXAMPLES = (
        "simkit sweep bouncing_ball --over launch_speed=3:6:4",
        "simkit sweep bouncing_ball --over launch_speed=7,8 -o runs/fast --report",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser)
        add_device(parser)
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
        parser.add_argument(
            "--memory", help="memory limit of a program, such as 8GiB (default: 60 %% of the free memory)"
        )
        add_workers(parser)
        add_no_render(parser, "draw no chart; draw it later with render")
        add_report(parser)
        parser.add_argument("--no-frames", action="store_true", help="keep diagnostics only, not the final frames")
        parser.add_argument(
            "--dry-run",
            nargs="?",
            const="size",
            choices=("size", "time"),
            help="print members, chunks, compilations, memory and disk only; `--dry-run time` also times a segment",
        )

    @staticmethod
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
        job = dataclasses.replace(job, pictures=pictures_of(arguments))
        if arguments.dry_run:
            exclude(arguments, ["report"], "is for finished work, and --dry-run does none")
            from simkit.cli.reports import sweep

            with on_device(arguments):
                return sweep.main(job, output, arguments)
        return carry_out(job, output, arguments, None, partial(begin, job, output, arguments.overwrite))


class Grad:
    """Differentiate a scenario's objective with respect to its parameters."""

    EXAMPLES = (
        "simkit grad bouncing_ball --wrt launch_speed --check",
        "simkit grad bouncing_ball --wrt launch_speed,launch_angle --second",
        "simkit grad nose_hoover --method fluctuation --objective potential_energy --wrt temperature",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser)
        add_device(parser)
        add_wrt(parser)
        add_mode(parser)
        parser.add_argument(
            "--method",
            default="path",
            choices=("path", "fluctuation"),
            help="path: through the steps, or implicitly at rest (default); fluctuation: of the mean of a diagnostic, "
            "--objective, in a bath, with standard errors",
        )
        parser.add_argument("--every", type=int, metavar="N", help="fluctuation: steps between samples (default: 10)")
        parser.add_argument("--skip", type=int, metavar="N", help="fluctuation: steps before them (default: a fifth)")
        parser.add_argument(
            "--memory", help="memory limit of the derivative, such as 200MB; steps are recomputed to stay within it"
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="compare with central differences (in float64 unless --precision is given)",
        )
        parser.add_argument("--second", action="store_true", help="also compute the matrix of second derivatives")
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            help="folder for the states and the result of a long derivative, which can resume",
        )
        parser.add_argument(
            "--seeds", type=int, metavar="N", help="differentiate the mean over N seeds, as one vectorized program"
        )
        add_processes(parser)
        parser.add_argument("--overwrite", action="store_true", help="replace an existing run directory")
        add_report(parser)

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Differentiate and report; a non-finite derivative, or one that differs from its difference, is a failure."""
        group = group_of(arguments)
        from simkit.cli.reports.derivative import report, report_second
        from simkit.jobs.derivatives import (
            Derivative,
            compare,
            differentiate,
            note_of,
            objective_name,
            selected_parameters,
        )
        from simkit.jobs.job import begin
        from simkit.jobs.stored_derivatives import gradient_job

        scenario = scenario_of(arguments)
        wrt = selected_parameters(scenario, names_of(arguments.wrt))
        if arguments.method == "fluctuation":
            return Grad.by_fluctuations(arguments, scenario, wrt)
        exclude(arguments, ["every", "skip"], "is for averages", "add --method fluctuation, or leave it out")
        objective = objective_name(scenario, arguments.objective)
        use_compilation_cache()
        if arguments.seeds is not None:
            names, remedy = ["output", "check", "second", "overwrite", "report"], "leave it out, or leave --seeds out"
            exclude(arguments, names, "is not for the mean over seeds", remedy)
        if group:
            exclude(arguments, ["memory"], "is for one process", "leave it out, or the number of processes")
            if arguments.seeds is None:
                exclude(arguments, ["processes"], "divides the seeds of a derivative", "give --seeds, or leave it out")
        if arguments.output is not None:
            remedy = "leave it out, or leave --output out"
            exclude(arguments, ["check", "second"], "is not for a derivative that is stored", remedy)
            job = gradient_job(scenario, wrt, objective, arguments.mode, arguments.memory)
            work = partial(begin, job, arguments.output, arguments.overwrite)
            return carry_out(job, arguments.output, arguments, None, work)
        exclude(arguments, ["overwrite", "report"], "needs --output", "give a folder, or leave it out")
        if arguments.memory:
            exclude(arguments, ["second", "check"], "has no memory limit", "leave it or --memory out")
        mode, memory, seeds = arguments.mode, arguments.memory, arguments.seeds
        work = partial(differentiate, scenario, wrt, objective, mode, memory, seeds, group)
        if group:
            if not group.is_first:
                return follow(work, group)
            with Progress(scenario.name, doing="differentiating", phase="ran"):
                derivative = together(group, "run the command again", work)()
            return report(derivative, scenario, objective, wrt, json=arguments.json)
        with on_device(arguments):
            if arguments.second:
                return report_second(scenario, wrt, objective, arguments)
            if not arguments.check:
                with Progress(scenario.name, doing="differentiating", phase="ran"):
                    derivative = work()
                return report(derivative, scenario, objective, wrt, json=arguments.json)
            if arguments.precision is None:
                scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
            with Progress(scenario.name, doing="differentiating, and comparing with central differences", phase="ran"):
                checked = compare(scenario, wrt, objective, arguments.mode)
            note = note_of(scenario, objective, checked.status, checked.derivative)
            derivative = Derivative(checked.value, checked.derivative, checked.status, note)
            return report(derivative, scenario, objective, wrt, json=arguments.json, checked=checked)

    @staticmethod
    def by_fluctuations(arguments: argparse.Namespace, scenario: Any, wrt: list[str]) -> int:
        """Average a diagnostic of one run in a bath, differentiate the average by fluctuations, and report."""
        from simkit.cli.reports.derivative import report
        from simkit.jobs.derivatives import objective_name
        from simkit.jobs.ensemble_derivatives import fluctuation_job
        from simkit.jobs.job import begin

        names = ["seeds", "check", "second", "memory", "processes"]
        exclude(arguments, names, "is for a derivative through the steps", "leave it out, or --method fluctuation")
        quantity = arguments.objective or objective_name(scenario, None)
        use_compilation_cache()
        job = fluctuation_job(scenario, wrt, quantity, arguments.every or 10, arguments.skip)
        if arguments.output is not None:
            work = partial(begin, job, arguments.output, arguments.overwrite)
            return carry_out(job, arguments.output, arguments, None, work)
        exclude(arguments, ["overwrite", "report"], "needs --output", "give a folder, or leave it out")
        with on_device(arguments), Progress(scenario.name, doing="sampling", phase="ran") as progress:
            derivative = begin(job, None, report=progress.update)
        return report(derivative, scenario, job.objective, wrt, json=arguments.json)


class Optimize:
    """Minimize an objective (or maximize it, if that is its goal) over parameters within their bounds."""

    EXAMPLES = (
        "simkit optimize bouncing_ball --wrt launch_speed",
        "simkit optimize bouncing_ball --wrt launch_speed,launch_angle --starts 4 -o runs/starts",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser)
        add_device(parser)
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
        add_report(parser)

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Optimize and report."""
        from simkit.jobs.job import begin
        from simkit.jobs.optimizations import planned

        scenario = scenario_of(arguments)
        job: Any = planned(
            scenario,
            names_of(arguments.wrt),
            arguments.objective,
            method=arguments.method,
            iterations=arguments.iterations,
            learning_rate=arguments.learning_rate,
            mode=arguments.mode,
            starts=arguments.starts,
        ).checked()
        check_pictures(job, arguments)
        job = dataclasses.replace(job, pictures=pictures_of(arguments))
        size, output = size_of(arguments), output_of(arguments, scenario.name)
        use_compilation_cache()
        return carry_out(job, output, arguments, size, partial(begin, job, output, arguments.overwrite))
